"""The console's HTTP server: routes, checks of requests, security headers, live events."""
