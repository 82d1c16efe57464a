"""The oracle: each algorithm once more, slowly and plainly, from its description. Imports nothing from locb.

Every quantity is computed from its definition when it is needed: inverses by numpy.linalg.inv, members as Python sets,
sums over all members in every round. A compiled policy must choose the same arm in every round.
"""

import math

import numpy as np

TIE = 1e-9


def shrinkage(m):
    return math.sqrt((1 + math.log(1 + m)) / (1 + m))


def pick(scores, ties, generator):
    """Index of the highest score; ties by the first or by one draw from a xorshift generator (a list of one int)."""
    best = max(scores)
    tied = [a for a, score in enumerate(scores) if score >= best - TIE]
    if ties == "first" or len(tied) == 1:
        return tied[0]
    word, mask = generator[0], 2**64 - 1
    word ^= (word << 13) & mask
    word ^= word >> 7
    word ^= (word << 17) & mask
    generator[0] = word
    return tied[((word >> 33) * len(tied)) >> 31]


def radius(name, m, A, t, n, d, sigma, delta, min_eigenvalue):
    if name == "regret":
        return shrinkage(m)
    if name == "ellipsoid":
        top = sigma * math.sqrt(np.linalg.slogdet(A)[1] + 2 * math.log(n / delta)) + 1
        return top / math.sqrt(np.linalg.eigvalsh(A)[0])
    if t < 1:
        return math.inf
    top = sigma * math.sqrt(2 * d * math.log(t) + 2 * math.log(2 * n / delta)) + 1
    if name == "clustering":
        return top / (math.sqrt(1 + m / 4) * n ** (1 / 3))
    H = (delta / n) / (2 * n * d)
    h = min_eigenvalue * m / 4 - 8 * math.log((m + 3) / H) - 2 * math.sqrt(m * math.log((m + 3) / H))
    return top / math.sqrt(1 + max(h, 0.0))


class Users:
    """Ridge estimates of some users: A = I + Σ x xᵀ, b = Σ r x."""

    def __init__(self, n, d):
        self.A = np.tile(np.eye(d), (n, 1, 1))
        self.inverse = self.A.copy()
        self.b = np.zeros((n, d))
        self.theta = np.zeros((n, d))
        self.m = np.zeros(n, dtype=int)

    def learn(self, i, x, r):
        self.A[i] += np.outer(x, x)
        self.b[i] += r * x
        self.m[i] += 1
        self.inverse[i] = np.linalg.inv(self.A[i])
        self.theta[i] = self.inverse[i] @ self.b[i]

    def correct(self, i, x, learned, r):
        self.b[i] += (r - learned) * x
        self.theta[i] = self.inverse[i] @ self.b[i]

    def grow(self, count):
        fresh = Users(count, self.b.shape[1])
        for name in ("A", "inverse", "b", "theta", "m"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(fresh, name)]))


def ucb(theta, inverse, X, alpha, factor=1.0):
    """What each arm is expected to earn, and the bonus: two arrays (k,)."""
    return X @ theta, np.array([alpha * math.sqrt(max(x @ inverse @ x, 0.0) * factor) for x in X])


class Policy:
    """Picks from what ``worth`` says about the arms: estimate and bonus."""

    def choose(self, scores):
        return pick(scores.tolist(), self.ties, self.generator)

    def recommend(self, i, X):
        return self.choose(sum(self.worth(i, X)))

    def correct(self, i, x, learned, r):
        """Groups are looked at in the rounds that follow, as ever."""
        self.users.correct(i, x, learned, r)


class LinUCB(Policy):
    def __init__(self, n, d, alpha, shared, ties, generator):
        self.own = Users(1 if shared else n, d)
        self.alpha, self.shared, self.ties, self.generator = alpha, shared, ties, [generator]

    def worth(self, i, X):
        row = 0 if self.shared else i
        return ucb(self.own.theta[row], self.own.inverse[row], X, self.alpha)

    def update(self, i, x, r):
        self.own.learn(0 if self.shared else i, x, r)

    def correct(self, i, x, learned, r):
        self.own.correct(0 if self.shared else i, x, learned, r)

    def groups(self):
        return set()


class CLUB(Policy):
    def __init__(self, n, d, alpha, alpha2, edges, ties, generator):
        self.users = Users(n, d)
        self.near = [set() for _ in range(n)]
        for i, j in edges:
            self.near[i].add(j)
            self.near[j].add(i)
        self.alpha, self.alpha2, self.ties, self.generator = alpha, alpha2, ties, [generator]
        self.n, self.t = n, 0

    def component(self, i):
        reached, waiting = {i}, [i]
        while waiting:
            found = self.near[waiting.pop()] - reached
            reached |= found
            waiting += found
        return frozenset(reached)

    def worth(self, i, X):
        V, d = sorted(self.component(i)), X.shape[1]
        inverse = np.linalg.inv(np.eye(d) + (self.users.A[V] - np.eye(d)).sum(axis=0))
        theta = inverse @ self.users.b[V].sum(axis=0)
        t = self.t + 1
        return ucb(theta, inverse, X, self.alpha, math.log(t + 1))

    def update(self, i, x, r):
        self.t += 1
        self.users.learn(i, x, r)
        m, far = self.users.m.tolist(), np.linalg.norm(self.users.theta - self.users.theta[i], axis=1).tolist()
        for j in list(self.near[i]):
            if far[j] > self.alpha2 * (shrinkage(m[i]) + shrinkage(m[j])):
                self.near[i].remove(j)
                self.near[j].remove(i)

    def groups(self):
        return {self.component(i) for i in range(self.n)}


class SCLUB(Policy):
    """Clusters are dictionaries in a list of slots (None: free); their sums are added up from their users' own."""

    def __init__(self, n, d, alpha, alpha_theta, alpha_p, ties, generator):
        self.users = Users(n, d)
        self.alpha, self.alpha_theta, self.alpha_p = alpha, alpha_theta, alpha_p
        self.ties, self.generator = ties, [generator]
        self.d, self.t, self.phase, self.phase_end = d, 0, 0, 0
        self.slots = [{"users": set(range(n)), "theta": np.zeros(d), "T": 0}]
        self.checked = set()

    def estimate(self, cluster):
        V = sorted(cluster["users"])
        inverse = np.linalg.inv(np.eye(self.d) + (self.users.A[V] - np.eye(self.d)).sum(axis=0))
        return inverse @ self.users.b[V].sum(axis=0), inverse

    def served(self, cluster):
        return int(self.users.m[sorted(cluster["users"])].sum())

    def slot_of(self, i):
        return next(s for s, cluster in enumerate(self.slots) if cluster and i in cluster["users"])

    def worth(self, i, X):
        theta, inverse = self.estimate(self.slots[self.slot_of(i)])
        return ucb(theta, inverse, X, self.alpha)

    def update(self, i, x, r):
        if self.t == self.phase_end:
            self.phase += 1
            self.phase_end += 2**self.phase
            self.checked = set()
            for cluster in self.slots:
                if cluster:
                    cluster["theta"], cluster["T"] = self.estimate(cluster)[0], self.served(cluster)
        self.users.learn(i, x, r)
        self.t += 1
        cluster, m, t = self.slots[self.slot_of(i)], self.users.m, self.t
        if len(cluster["users"]) > 1:
            distance = np.linalg.norm(self.users.theta[i] - cluster["theta"])
            far = distance > self.alpha_theta * (shrinkage(m[i]) + shrinkage(cluster["T"]))
            limit = 2 * self.alpha_p * shrinkage(t)
            unlike = any(abs(m[i] / t - m[j] / t) > limit for j in cluster["users"])
            if far or unlike:
                cluster["users"].remove(i)
                alone = {"users": {i}, "theta": cluster["theta"], "T": cluster["T"]}
                free = next((s for s, c in enumerate(self.slots) if c is None), None)
                if free is None:
                    self.slots.append(alone)
                else:
                    self.slots[free] = alone
        self.checked.add(i)
        ready = [s for s, cluster in enumerate(self.slots) if cluster and cluster["users"] <= self.checked]
        known = {s: self.standing(self.slots[s]) for s in ready}
        for a in ready:
            for b in ready:
                if a < b and self.slots[a] and self.slots[b] and self.alike(*known[a], *known[b]):
                    self.slots[a]["users"] |= self.slots[b]["users"]
                    self.slots[b] = None
                    known[a] = self.standing(self.slots[a])

    def standing(self, cluster):
        """What a cluster is compared by: estimate, shrinkage and frequency."""
        T = self.served(cluster)
        return self.estimate(cluster)[0].tolist(), shrinkage(T), T / (len(cluster["users"]) * self.t)

    def alike(self, theta_a, shrinkage_a, frequency_a, theta_b, shrinkage_b, frequency_b):
        near = math.dist(theta_a, theta_b) < self.alpha_theta / 2 * (shrinkage_a + shrinkage_b)
        return near and abs(frequency_a - frequency_b) < self.alpha_p * shrinkage(self.t)

    def groups(self):
        return {frozenset(cluster["users"]) for cluster in self.slots if cluster}


class LOCB(Policy):
    def __init__(
        self, n, d, gamma, seeds, alpha, tau, delta, sigma, radius, min_eigenvalue, stop, bonus, ties, generator,
        late_seeds=0,
    ):  # fmt: skip
        self.users = Users(n, d)
        self.n, self.d, self.seeds, self.late_seeds = n, d, list(seeds), late_seeds
        self.gamma, self.alpha, self.tau, self.delta, self.sigma = gamma, alpha, tau, delta, sigma
        self.radius, self.min_eigenvalue, self.stop, self.bonus = radius, min_eigenvalue, stop, bonus
        self.ties, self.generator = ties, [generator]
        self.N = {s: set(range(n)) for s in self.seeds}
        self.returned = dict.fromkeys(self.seeds)
        self.joined = [0] * n
        self.t = 0
        self.remembered = {}

    def B(self, i):
        u = self.users
        # Remembered with all that it depends on: users who were served alike often differ in one kind of radius only.
        own = (i, None) if self.radius == "ellipsoid" else (None, self.t)
        key = (*own, int(u.m[i]), self.n)
        if key not in self.remembered:
            more = self.sigma, self.delta, self.min_eigenvalue
            self.remembered[key] = radius(self.radius, key[2], u.A[i], self.t, self.n, self.d, *more)
        return self.remembered[key]

    def distance(self, i, j):
        return float(np.linalg.norm(self.users.theta[i] - self.users.theta[j]))

    def worth(self, i, X):
        u = self.users
        C = [s for s in self.seeds if i in self.N[s]]
        if not C:
            return ucb(u.theta[i], u.inverse[i], X, self.alpha)
        spread = np.einsum("ka,nab,kb->nk", X, u.inverse, X)  # (n, k)
        share = np.zeros((len(C), self.n))  # of each member in the mean over its set
        for place, s in enumerate(C):
            share[place, list(self.N[s])] = 1 / len(self.N[s])
        estimates = share @ (u.theta @ X.T)  # (sets, k)
        bonuses = self.alpha * (share @ np.sqrt(spread) if self.bonus == "mean" else np.sqrt(share @ spread))
        best = np.argmax(estimates + bonuses, axis=0)  # of each arm, the set that scores it highest
        arms = range(len(X))
        return estimates[best, arms], bonuses[best, arms]

    def update(self, i, x, r):
        self.users.learn(i, x, r)
        self.t += 1
        m = self.users.m.tolist()
        B = [self.B(j) for j in range(self.n)]
        far = np.linalg.norm(self.users.theta - self.users.theta[i], axis=1).tolist()
        for s in self.seeds:
            N = self.N[s]
            if self.returned[s] is not None:
                if i not in N and self.joined[i] >= self.returned[s] and self.takes_in(s, i, B):
                    N.add(i)
                continue
            if i != s and far[s] > B[i] + B[s]:
                N.discard(i)
            else:
                N.add(i)
            if any(m[j] == 0 for j in N):
                continue
            if self.stop == "certificate":
                gap = np.linalg.norm(self.users.theta - self.users.theta[s], axis=1).tolist()
                reach = sorted((gap[j] + B[j] for j in N), reverse=True)
                if sum(reach[:2]) < self.gamma:
                    self.returned[s] = self.t
            elif max(B[j] for j in N) < self.gamma * self.tau / 8:
                for j in sorted(N - {s}) if self.stop == "radius" else []:
                    if self.distance(j, s) > B[j] + B[s]:
                        N.discard(j)
                if max(B[j] for j in N) < self.gamma * self.tau / 8:
                    self.returned[s] = self.t

    def takes_in(self, s, i, B):
        if self.distance(i, s) > B[i] + B[s]:
            return False
        if self.stop != "certificate":
            return B[i] < self.gamma * self.tau / 8
        reach = self.distance(i, s) + B[i]
        return all(reach + self.distance(j, s) + B[j] < self.gamma for j in self.N[s])

    def add_users(self, count):
        for i in range(self.n, self.n + count):
            for s in self.seeds:
                if self.returned[s] is None:
                    self.N[s].add(i)
            self.joined.append(self.t)
        self.users.grow(count)
        self.n += count
        for s in range(self.n - count, self.n)[: self.late_seeds]:
            self.late_seeds -= 1
            self.seeds.append(s)
            self.N[s], self.returned[s] = set(range(self.n)), None

    def groups(self):
        return {(s, frozenset(self.N[s]), self.returned[s]) for s in self.seeds}

    def certificate(self, members):
        u, members = self.users, sorted(members)
        B = {
            j: radius("ellipsoid", u.m[j], u.A[j], self.t, self.n, self.d, self.sigma, self.delta, None)
            for j in members
        }
        pairs = [(i, j) for i in members for j in members if i < j]
        return max((self.distance(i, j) + B[i] + B[j] for i, j in pairs), default=0.0)


class ELOC(Policy):
    """Every density with inverses and determinants; all sums over users anew in every round.

    Components 0 … K − 1 are the seeds' neighbourhoods, K is everyone, K + 1 the population.
    """

    def __init__(self, n, d, gamma, seeds, beta, memory, ties, generator):
        self.gamma, self.kept = gamma, 1.0 if memory is None else 1 - 1 / memory
        self.d, self.seeds, self.beta, self.K = d, list(seeds), beta, len(seeds)
        self.ties, self.generator = ties, [generator]
        self.w = gamma**2 / (4 * d) * np.array([1.0] * self.K + [0.01])
        self.n, self.G, self.b, self.m = 0, np.zeros((0, d, d)), np.zeros((0, d)), np.zeros(0, dtype=int)
        self.q = np.zeros((0, self.K + 1))  # all weigh 1 in everyone
        self.W, self.h = np.zeros((0, d, d)), np.zeros((0, d))  # of the least squares for μ_0
        self.add_users(n)
        self.noise, self.mu0, self.Sigma0 = 0.25, np.zeros(d), np.eye(d) / d
        self.pi = np.array([0.6 / self.K] * self.K + [0.1, 0.3])
        self.L = np.array([-8.0, 0.0, -2.0])  # everyone, population, mixture
        self.t, self.remembered = 0, (None, None)
        self.mu, self.v = self.solve_centres()
        self.trace_then = np.zeros(self.K + 1)

    def solve_centres(self, without=None):
        """Centres and rounded widths of the components, without one user or with all."""
        q = self.q.copy()
        if without is not None:
            q[without] = 0.0
        A, c = np.einsum("is,iab->sab", q, self.G), np.einsum("is,ia->sa", q, self.b)
        prior = self.noise * np.linalg.inv(self.Sigma0)
        inverse = np.linalg.inv(A + prior)
        v = self.w + self.noise * np.trace(inverse, axis1=1, axis2=2) / self.d
        return np.einsum("sab,sb->sa", inverse, c + prior @ self.mu0), 2.0 ** np.floor(np.log2(v) + 0.5)

    def explain(self, i, mu, v):
        """Log evidence of each component for what user i did, and mean and covariance of θ under it."""
        G, b, noise = self.G[i], self.b[i], self.noise
        mu = np.concatenate([mu, [self.mu0]])
        prior = np.concatenate([v[:, None, None] * np.eye(self.d), [self.Sigma0]])
        g = (b - mu @ G) / noise
        V = np.linalg.inv(G / noise + np.linalg.inv(prior))
        log_det = np.linalg.slogdet(np.eye(self.d) + G @ prior / noise)[1]
        misfit = np.einsum("sa,ab,sb->s", mu, G, mu) - 2 * mu @ b
        moved = np.einsum("sab,sb->sa", V, g)
        return -0.5 * log_det - misfit / (2 * noise) + 0.5 * (g * moved).sum(axis=1), mu + moved, V

    def components(self, i):
        evidence, means, V = self.explain(i, self.mu, self.v)
        share = self.q[i] * np.trace(self.G[i])
        large = (share > 0) & (share > 0.0213 * (self.q.T @ np.trace(self.G, axis1=1, axis2=2)))
        large &= evidence[:-1] >= evidence.max() - 16
        if large.any():  # compared as they would be without the user
            for mine, other in zip((evidence, means, V), self.explain(i, *self.solve_centres(without=i)), strict=True):
                mine[:-1][large] = other[:-1][large]
        return evidence, means, V

    def believe(self, i):
        # Asked twice a round, before the choice and before learning: remembered until something is learned.
        if self.remembered[0] != (i, self.t):
            self.remembered = (i, self.t), self.work_out(i)
        return self.remembered[1]

    def work_out(self, i):
        evidence, means, inside = self.components(i)
        odds = self.pi * np.exp(evidence - evidence.max())
        odds[odds < 1e-3 * odds.max()] = 0.0
        odds /= odds.sum()
        gate = np.exp(self.L - self.L.max())
        gate /= gate.sum()
        weight = gate[2] * odds
        weight[-2:] += gate[:2]
        theta = weight @ means
        V = np.einsum("s,sab->ab", weight, inside) + (weight * (means - theta).T) @ (means - theta)
        return theta, V, odds, means, inside

    def worth(self, i, X):
        theta, V, *_ = self.believe(i)
        return ucb(theta, V, X, self.beta * math.sqrt(20 / (20 + self.m[i])))

    def update(self, i, x, r):
        theta, V, odds, means, inside = self.believe(i)
        self.t += 1
        self.m[i] += 1
        seen, noise = int((self.m > 0).sum()), self.noise
        guesses = np.array([means[-2] @ x, means[-1] @ x, odds @ means @ x])
        self.L = (1 - 1 / (60 * seen)) * self.L - (r - guesses) ** 2 / (2 * noise)
        self.G[i] = self.kept * self.G[i] + np.outer(x, x)
        self.b[i] = self.kept * self.b[i] + r * x
        self.keep_weights(i, odds)
        if self.m[i] <= 32 or self.m[i] % 4 == 0:
            self.learn_population(i, means[-1], inside[-1], seen)
        told = (r - theta @ x) ** 2 / (1 + x @ V @ x / noise)
        self.noise = max(noise + 2 / (self.t + 22) * (told - noise), 1e-6)
        self.pi += (odds - self.pi) / (seen + 5)
        self.pi = np.maximum(self.pi, [0.02 / self.K] * self.K + [0.02, 0.02])
        self.pi /= self.pi.sum()
        trace = self.q.T @ np.trace(self.G, axis1=1, axis2=2)
        due = np.abs(trace - self.trace_then) > 0.0123 * trace
        due[self.t % (self.K + 1)] = True
        mu, v = self.solve_centres()
        self.mu[due], self.v[due], self.trace_then[due] = mu[due], v[due], trace[due]
        if self.m[i] in (16, 32, 64, 128, 256, 512, 1024) and i not in self.seeds and odds[-1] > 0.5:
            self.reseed(i)

    def correct(self, i, x, learned, r):
        self.b[i] += (r - learned) * x
        self.remembered = (None, None)

    def reseed(self, i):
        """Of the seeds whose centre is near another's let the one that was served least start anew at user i."""
        gap = np.linalg.norm(self.mu[:-1, None] - self.mu[None, :-1], axis=2) + np.diag([math.inf] * self.K)
        twins = np.flatnonzero(gap.min(axis=1) < self.gamma / 2)
        if twins.size == 0:
            return
        s = min(twins, key=lambda c: self.m[self.seeds[c]])
        self.q[:, s] = 0.0
        self.q[i, : self.K] = 0.0
        self.q[i, s] = 1.0
        self.seeds[s] = i
        mu, v = self.solve_centres()
        self.mu[s], self.v[s] = mu[s], v[s]
        self.trace_then[s] = np.trace(self.G[i])

    def keep_weights(self, i, odds):
        """The eight largest weights; of equal ones those that come first from seed i mod K on; a seed's own is 1."""
        own = [self.seeds.index(i)] if i in self.seeds else []
        largest = []
        for s in [(i + z) % self.K for z in range(self.K)]:
            if odds[s] > 0 and s not in own:
                place = len(largest)
                while place > 0 and odds[s] > odds[largest[place - 1]] * (1 + 1e-6):
                    place -= 1
                largest.insert(place, s)
                largest = largest[: 8 - len(own)]
        self.q[i, : self.K] = 0.0
        self.q[i, largest] = odds[largest]
        self.q[i, own] = 1.0

    def learn_population(self, i, mean, V, seen):
        # Generalised least squares: around μ_0 user i's own estimate has covariance σ² G⁻¹ + Σ_0.
        prior = np.linalg.inv(self.Sigma0)
        after = np.linalg.inv(self.G[i] / self.noise + prior)
        self.W[i], self.h[i] = prior - prior @ after @ prior, prior @ after @ self.b[i] / self.noise
        told = V + np.outer(mean - self.mu0, mean - self.mu0) + 1e-6 * np.eye(self.d)
        self.Sigma0 = self.Sigma0 + (told - self.Sigma0) / (seen + 5)
        self.mu0 = np.linalg.solve(self.W.sum(axis=0) + 1e-3 * np.eye(self.d), self.h.sum(axis=0))

    def add_users(self, count):
        for name in ("G", "b", "m", "q", "W", "h"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros((count, *old.shape[1:]), old.dtype)]))
        self.q[self.n :, self.K] = 1.0
        self.n += count

    def groups(self):
        evidence = np.array([self.components(i)[0] for i in range(self.n)])  # (n, K + 2)
        inside = evidence >= evidence.max(axis=1, keepdims=True) - math.log(20)
        inside[self.seeds, range(self.K)] = True
        found = {(s, frozenset(np.flatnonzero(inside[:, c]).tolist())) for c, s in enumerate([*self.seeds, None])}
        return found - {(None, frozenset())}
