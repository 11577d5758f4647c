"""Learning algorithms: PPO and recurrent PPO for batched environments, imitation, behaviour cloning."""
