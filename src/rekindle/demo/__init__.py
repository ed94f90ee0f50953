"""`python -m rekindle.demo`: an agent is killed with SIGKILL, and goes on in a new process. Offline, in seconds."""
