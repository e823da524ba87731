"""The drill: play a scenario on the real workers, stop it at a chosen point, and hold what the
ledger says against what the world and the model's provider recorded by themselves.
"""
