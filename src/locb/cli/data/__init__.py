"""Commands about data: ``locb data`` prepares data sets, and ``locb evaluate`` evaluates policies on logs."""
