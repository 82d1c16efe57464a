"""Dashboard: views of the state of the service, and the web page that shows these views."""
