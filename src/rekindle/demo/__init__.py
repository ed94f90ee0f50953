"""`python -m rekindle.demo`: an agent is killed with SIGKILL and goes on as if nothing had happened. Offline, in seconds."""
