"""The paper on Nuwa, a receiver-driven congestion control, and Nuwa-RL: its tables and figures as studies of one campaign."""
