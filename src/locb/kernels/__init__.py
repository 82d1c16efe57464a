"""The compiled part: arrays in, arrays out, no objects. One module a policy, and what they share."""
