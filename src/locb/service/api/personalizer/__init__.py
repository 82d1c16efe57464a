"""Routes that are compatible with Azure Personalizer."""
