"""Compiled kernels: functions on plain arrays.

There is one subpackage per algorithm (LinTS is in ``linucb``, RCLUMB in ``club``). ``groups`` is for groups of users in
a log, and ``common`` for shared functions.

The kernels and their callers use these symbols:

| symbol | meaning |
| --- | --- |
| n | number of users |
| N | capacity: the number of users for which the arrays have rows; N ≥ n, so that users can be added |
| d, k, K | number of features, of arms in a round, and of seed users |
| p | d (d + 1) / 2, the length of a packed d × d matrix (see ``common.linear_algebra``) |
| T, t | number of rounds of a batch; number of the current round, from 1 |
| i, j | users |
| s | seed user, cluster or neighbourhood, as an index from 0 to K − 1 |
| x, r | context (features) of an arm, (d,), and its reward |
| m | number of rounds in which a user was served, that is, in which the policy learned a reward of that user |
| θ, θ̂ | true parameter vector of a user, with mean reward θᵀx, and its estimate: (d,) |
| b, G, A | Σ r x, Σ x xᵀ and I + G, over the rounds of one user or of several users; θ̂ = A⁻¹ b |
| B | confidence radius: ‖θ̂ − θ‖ is assumed to be at most B (see ``confidence_radii``) |
| α | weight of the exploration bonus |

*Sums* are a row (b, G). The sums of a cluster are updated by adding and subtracting the sums of users. LOCB is an
exception: the sums of its clusters are sums of estimates. An *estimate* is a row (θ̂, A⁻¹). *Scratch* is a tuple of work
arrays that a loop over rounds allocates once and reuses; their contents are not part of the state.
"""
