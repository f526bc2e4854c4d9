"""Judge prompts: templates as data, a one-pass renderer, a user's own prompt, and checks without any call."""
