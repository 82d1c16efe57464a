"""Dashboard: views of the service's state for people, and the page that shows them."""
