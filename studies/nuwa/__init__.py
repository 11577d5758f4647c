"""Tables and figures of the paper on Nuwa, a receiver-driven congestion control, and Nuwa-RL, as studies of one campaign."""
