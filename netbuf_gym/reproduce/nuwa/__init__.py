"""The paper on Nuwa, a receiver-driven congestion control, and on Nuwa-RL: its tables and figures as studies of one campaign."""
