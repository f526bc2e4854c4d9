"""Attack, shield and calibrate LLM judges, and decide whether a judge prompt may ship."""
