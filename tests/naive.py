"""The oracle: an independent, direct implementation of each algorithm, which imports nothing from locb.

Every quantity is computed from its definition when it is needed: inverses by numpy.linalg.inv, members as Python sets,
sums over all members in every round. A compiled policy must choose the same arm in every round. Names follow the
letters of the papers.
"""

import math

import numpy as np

TIE = 1e-9


def shrinkage(m):
    return math.sqrt((1 + math.log(1 + m)) / (1 + m))


def pick_arm(scores, ties, generator):
    """Return the index of the highest score. Ties: the first, or one draw of the xorshift generator ``[state]``."""
    best = max(scores)
    tied = [a for a, score in enumerate(scores) if score >= best - TIE]
    if ties == "first" or len(tied) == 1:
        return tied[0]
    return tied[((next_word(generator) >> 33) * len(tied)) >> 31]


def next_word(generator):
    """Advance the xorshift generator ``[state]`` and return its 64 bits."""
    word, mask = generator[0], 2**64 - 1
    word ^= (word << 13) & mask
    word ^= word >> 7
    word ^= (word << 17) & mask
    generator[0] = word
    return word


def uniform(generator):
    """Return a number between 0 and 1 from the upper 53 bits of the generator."""
    return ((next_word(generator) >> 11) + 0.5) / 2**53


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
    """Ridge estimates of several users: A = I + Σ x xᵀ, b = Σ r x."""

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

    def add(self, count):
        new = Users(count, self.b.shape[1])
        for name in ("A", "inverse", "b", "theta", "m"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(new, name)]))


def ucb(theta, inverse, X, alpha, factor=1.0):
    """Return the estimated reward and the bonus of each arm: two arrays (k,)."""
    return np.array(X) @ theta, np.array([alpha * math.sqrt(max(x @ inverse @ x, 0.0) * factor) for x in X])


class Policy:
    """A policy that chooses the arm with the highest sum of estimate and bonus; ``evaluate`` returns both."""

    safe = False

    def choose(self, scores):
        arm = pick_arm(scores.tolist(), self.ties, self.generator)
        return self.screen_choice(arm) if self.safe else arm

    def screen_choice(self, arm):
        """Return ``arm`` if the upper bound from the user's own rewards is high enough, else the arm of LinUCB-IND."""
        i, X = self.offered
        estimate, width = ucb(self.users.theta[i], self.users.inverse[i], X, self.alpha)
        upper = estimate + width
        passes = upper[arm] >= upper.max() - 2 * width[arm] - TIE
        return arm if passes else pick_arm(upper.tolist(), self.ties, self.generator)

    def recommend(self, i, X):
        return self.choose(sum(self.evaluate(i, X)))

    def correct(self, i, x, learned, r):
        """Replace a learned reward. Clusters change only in the rounds that follow."""
        self.users.correct(i, x, learned, r)


class LinUCB(Policy):
    def __init__(self, n, d, alpha, shared, ties, generator):
        self.own = Users(1 if shared else n, d)
        self.alpha, self.shared, self.ties, self.generator = alpha, shared, ties, [generator]

    def evaluate(self, i, X):
        row = 0 if self.shared else i
        return ucb(self.own.theta[row], self.own.inverse[row], X, self.alpha)

    def update(self, i, x, r):
        self.own.learn(0 if self.shared else i, x, r)

    def correct(self, i, x, learned, r):
        self.own.correct(0 if self.shared else i, x, learned, r)

    def groups(self):
        return set()


def draw(theta, covariance, generator):
    """Return a draw from a normal distribution; the numbers come from the xorshift generator ``[state]``."""
    normals = []
    for _ in range((len(theta) + 1) // 2):
        radius = math.sqrt(-2 * math.log(uniform(generator)))
        angle = 2 * math.pi * uniform(generator)
        normals += [radius * math.cos(angle), radius * math.sin(angle)]
    return theta + np.linalg.cholesky(covariance) @ normals[: len(theta)]


class LinTS(LinUCB):
    def evaluate(self, i, X):
        row = 0 if self.shared else i
        theta = self.own.theta[row]
        drawn = draw(theta, self.own.inverse[row], self.generator)
        return X @ theta, self.alpha * (X @ (drawn - theta))


class HybridLinUCB(Policy):
    """Ridge regression with one block of coefficients for all users and one block per user (one large matrix)."""

    def __init__(self, n, d, alpha, ties, generator):
        self.A, self.b = np.eye(d * (n + 1)), np.zeros(d * (n + 1))
        self.n, self.d, self.alpha, self.ties, self.generator = n, d, alpha, ties, [generator]

    def expand(self, i, x):
        z = np.zeros(len(self.b))
        z[: self.d] = x
        z[self.d * (i + 1) : self.d * (i + 2)] = x
        return z

    def evaluate(self, i, X):
        inverse = np.linalg.inv(self.A)
        return ucb(inverse @ self.b, inverse, [self.expand(i, x) for x in X], self.alpha)

    def update(self, i, x, r):
        z = self.expand(i, x)
        self.A += np.outer(z, z)
        self.b += r * z

    def correct(self, i, x, learned, r):
        self.b += (r - learned) * self.expand(i, x)

    def add_users(self, count):
        size, new = len(self.b), count * self.d
        self.A = np.block([[self.A, np.zeros((size, new))], [np.zeros((new, size)), np.eye(new)]])
        self.b, self.n = np.concatenate([self.b, np.zeros(new)]), self.n + count

    def theta(self):
        """Return the shared coefficients (d,), and those of each user (n, d)."""
        rows = np.linalg.solve(self.A, self.b).reshape(self.n + 1, self.d)
        return rows[0], rows[1:]

    def groups(self):
        return set()


class MixedEffects(Policy):
    def __init__(self, n, d, alpha, sigma, explore, ties, generator):
        self.G, self.b, self.m = np.zeros((n, d, d)), np.zeros((n, d)), np.zeros(n, dtype=int)
        self.mu, self.Sigma = np.zeros(d), np.eye(d)
        self.alpha, self.sigma, self.explore, self.ties, self.generator = alpha, sigma, explore, ties, [generator]
        self.rounds_since_fit = 0

    def posterior(self, i):
        prior = np.linalg.inv(self.Sigma)
        V = np.linalg.inv(prior + self.G[i] / self.sigma**2)
        return V @ (prior @ self.mu + self.b[i] / self.sigma**2), V

    def evaluate(self, i, X):
        mean, V = self.posterior(i)
        if self.explore == "ucb":
            return ucb(mean, V, X, self.alpha)
        return X @ mean, self.alpha * (X @ (draw(mean, V, self.generator) - mean))

    def update(self, i, x, r):
        self.G[i] += np.outer(x, x)
        self.b[i] += r * x
        self.m[i] += 1
        self.rounds_since_fit += 1
        if self.rounds_since_fit >= len(self.m):
            self.rounds_since_fit = 0
            d = len(x)
            posteriors = [(np.zeros(d), np.eye(d))] + [self.posterior(j) for j in np.flatnonzero(self.m)]
            self.mu = np.mean([mean for mean, _ in posteriors], axis=0)
            self.Sigma = np.mean([V + np.outer(mean - self.mu, mean - self.mu) for mean, V in posteriors], axis=0)

    def correct(self, i, x, learned, r):
        self.b[i] += (r - learned) * x

    def add_users(self, count):
        for name in ("G", "b", "m"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros((count, *array.shape[1:]), array.dtype)]))

    def groups(self):
        return set()


class CLUB(Policy):
    def __init__(self, n, d, alpha, alpha2, edges, ties, generator, safe=False):
        self.users = Users(n, d)
        self.neighbours = [set() for _ in range(n)]
        for i, j in edges:
            self.neighbours[i].add(j)
            self.neighbours[j].add(i)
        self.alpha, self.alpha2, self.ties, self.generator, self.safe = alpha, alpha2, ties, [generator], safe
        self.n, self.t = n, 0

    def component(self, i):
        visited, stack = {i}, [i]
        while stack:
            found = self.neighbours[stack.pop()] - visited
            visited |= found
            stack += found
        return frozenset(visited)

    def evaluate(self, i, X):
        V, d = sorted(self.component(i)), X.shape[1]
        self.offered = i, X
        inverse = np.linalg.inv(np.eye(d) + (self.users.A[V] - np.eye(d)).sum(axis=0))
        theta = inverse @ self.users.b[V].sum(axis=0)
        t = self.t + 1
        return ucb(theta, inverse, X, self.alpha, math.log(t + 1))

    def update(self, i, x, r):
        self.t += 1
        self.users.learn(i, x, r)
        m, far = self.users.m.tolist(), np.linalg.norm(self.users.theta - self.users.theta[i], axis=1).tolist()
        for j in list(self.neighbours[i]):
            if far[j] > self.alpha2 * (shrinkage(m[i]) + shrinkage(m[j])):
                self.neighbours[i].remove(j)
                self.neighbours[j].remove(i)

    def groups(self):
        return {self.component(i) for i in range(self.n)}


class RCLUMB(CLUB):
    def __init__(self, n, d, alpha, alpha2, epsilon, edges, ties, generator, safe=False):
        super().__init__(n, d, alpha, alpha2, edges, ties, generator, safe)
        self.epsilon = epsilon

    def evaluate(self, i, X):
        V, d = sorted(self.neighbours[i] | {i}), X.shape[1]
        self.offered = i, X
        inverse = np.linalg.inv(np.eye(d) + (self.users.A[V] - np.eye(d)).sum(axis=0))
        theta = inverse @ self.users.b[V].sum(axis=0)
        weight = self.alpha + self.epsilon * math.sqrt(self.users.m[V].sum())
        return ucb(theta, inverse, X, weight)

    def update(self, i, x, r):
        self.users.learn(i, x, r)
        F = [shrinkage(m) for m in self.users.m.tolist()]
        for j in list(self.neighbours[i]):
            distance = np.linalg.norm(self.users.theta[i] - self.users.theta[j])
            if distance > self.alpha2 * (F[i] + F[j] + self.epsilon):
                self.neighbours[i].remove(j)
                self.neighbours[j].remove(i)

    def add_users(self, count):
        """Add users to a complete graph."""
        self.users.add(count)
        for i in range(self.n, self.n + count):
            self.neighbours.append(set(range(i)))
            for j in range(i):
                self.neighbours[j].add(i)
        self.n += count


class DynUCB(Policy):
    def __init__(self, n, d, alpha, n_clusters, ties, generator):
        self.users, self.d, self.t = Users(n, d), d, 0
        self.alpha, self.K, self.ties, self.generator = alpha, n_clusters, ties, [generator]
        self.cluster = [self.random_cluster() for _ in range(n)]

    def random_cluster(self):
        return ((next_word(self.generator) >> 33) * self.K) >> 31

    def members(self, k):
        return [i for i, cluster in enumerate(self.cluster) if cluster == k]

    def estimate(self, k):
        V = self.members(k)
        inverse = np.linalg.inv(np.eye(self.d) + (self.users.A[V] - np.eye(self.d)).sum(axis=0))
        return inverse @ self.users.b[V].sum(axis=0), inverse

    def evaluate(self, i, X):
        return ucb(*self.estimate(self.cluster[i]), X, self.alpha, math.log(self.t + 2))

    def update(self, i, x, r):
        before = [self.estimate(k)[0] for k in range(self.K)]
        self.users.learn(i, x, r)
        self.t += 1
        far = [float(((self.users.theta[i] - theta) ** 2).sum()) for theta in before]
        if min(far) < far[self.cluster[i]]:
            self.cluster[i] = far.index(min(far))

    def add_users(self, count):
        self.users.add(count)
        self.cluster += [self.random_cluster() for _ in range(count)]

    def groups(self):
        return {frozenset(self.members(k)) for k in set(self.cluster)}


class CAB(Policy):
    def __init__(self, n, d, alpha, gamma, ties, generator):
        self.users, self.t = Users(n, d), 0
        self.alpha, self.gamma, self.ties, self.generator = alpha, gamma, ties, [generator]

    def predict(self, x):
        """Return the prediction and the confidence width of each user for an arm."""
        variance = np.einsum("a,nab,b->n", x, self.users.inverse, x)
        return self.users.theta @ x, self.alpha * np.sqrt(variance * math.log(self.t + 2))

    def neighbourhood(self, i, x):
        prediction, width = self.predict(x)
        return [j for j in range(len(width)) if j == i or abs(prediction[i] - prediction[j]) <= width[i] + width[j]]

    def evaluate(self, i, X):
        parts = []
        for x in X:
            N, (prediction, width) = self.neighbourhood(i, x), self.predict(x)
            parts.append((prediction[N].mean(), width[N].mean()))
        return np.array(parts).T

    def update(self, i, x, r):
        N, (_, width) = self.neighbourhood(i, x), self.predict(x)
        narrow = [j for j in N if width[j] < self.gamma / 4] if width[i] < self.gamma / 4 else []
        for j in {i, *narrow}:
            self.users.learn(j, x, r)
        self.t += 1

    def add_users(self, count):
        self.users.add(count)

    def groups(self):
        return set()


class SCLUB(Policy):
    """SCLUB. Clusters are dictionaries in a list of slots (None: free); their sums are those of their users."""

    def __init__(self, n, d, alpha, alpha_theta, alpha_p, ties, generator, safe=False):
        self.users = Users(n, d)
        self.alpha, self.alpha_theta, self.alpha_p = alpha, alpha_theta, alpha_p
        self.ties, self.generator, self.safe = ties, [generator], safe
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

    def evaluate(self, i, X):
        theta, inverse = self.estimate(self.slots[self.slot_of(i)])
        self.offered = i, X
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
            differs = any(abs(m[i] / t - m[j] / t) > limit for j in cluster["users"])
            if far or differs:
                cluster["users"].remove(i)
                singleton = {"users": {i}, "theta": cluster["theta"], "T": cluster["T"]}
                free = next((s for s, c in enumerate(self.slots) if c is None), None)
                if free is None:
                    self.slots.append(singleton)
                else:
                    self.slots[free] = singleton
        self.checked.add(i)
        ready = [s for s, cluster in enumerate(self.slots) if cluster and cluster["users"] <= self.checked]
        summaries = {s: self.summarize(self.slots[s]) for s in ready}
        for a in ready:
            for b in ready:
                if a < b and self.slots[a] and self.slots[b] and self.similar(*summaries[a], *summaries[b]):
                    self.slots[a]["users"] |= self.slots[b]["users"]
                    self.slots[b] = None
                    summaries[a] = self.summarize(self.slots[a])

    def summarize(self, cluster):
        """Return the values by which clusters are compared: estimate, shrinkage and frequency."""
        T = self.served(cluster)
        return self.estimate(cluster)[0].tolist(), shrinkage(T), T / (len(cluster["users"]) * self.t)

    def similar(self, theta_a, shrinkage_a, frequency_a, theta_b, shrinkage_b, frequency_b):
        near = math.dist(theta_a, theta_b) < self.alpha_theta / 2 * (shrinkage_a + shrinkage_b)
        return near and abs(frequency_a - frequency_b) < self.alpha_p * shrinkage(self.t)

    def groups(self):
        return {frozenset(cluster["users"]) for cluster in self.slots if cluster}


class LOCB(Policy):
    def __init__(
        self, n, d, gamma, seeds, alpha, tau, delta, sigma, radius, min_eigenvalue, stop, bonus, ties, generator,
        late_seeds=0, safe=False,
    ):  # fmt: skip
        self.users = Users(n, d)
        self.n, self.d, self.seeds, self.late_seeds = n, d, list(seeds), late_seeds
        self.gamma, self.alpha, self.tau, self.delta, self.sigma = gamma, alpha, tau, delta, sigma
        self.radius, self.min_eigenvalue, self.stop, self.bonus = radius, min_eigenvalue, stop, bonus
        self.ties, self.generator, self.safe = ties, [generator], safe
        self.N = {s: set(range(n)) for s in self.seeds}
        self.returned = dict.fromkeys(self.seeds)
        self.added_at = [0] * n
        self.t = 0
        self.cached_radii = {}

    def B(self, i):
        u = self.users
        # The key contains everything that a radius depends on. Only the ellipsoid radius depends on the user itself.
        own = (i, None) if self.radius == "ellipsoid" else (None, self.t)
        key = (*own, int(u.m[i]), self.n)
        if key not in self.cached_radii:
            parameters = self.sigma, self.delta, self.min_eigenvalue
            self.cached_radii[key] = radius(self.radius, key[2], u.A[i], self.t, self.n, self.d, *parameters)
        return self.cached_radii[key]

    def distance(self, i, j):
        return float(np.linalg.norm(self.users.theta[i] - self.users.theta[j]))

    def evaluate(self, i, X):
        u, self.offered = self.users, (i, X)
        C = [s for s in self.seeds if i in self.N[s]]
        if not C:
            return ucb(u.theta[i], u.inverse[i], X, self.alpha)
        variance = np.einsum("ka,nab,kb->nk", X, u.inverse, X)  # (n, k)
        share = np.zeros((len(C), self.n))  # weight of each member in the mean over its cluster
        for row, s in enumerate(C):
            share[row, list(self.N[s])] = 1 / len(self.N[s])
        estimates = share @ (u.theta @ X.T)  # (clusters, k)
        bonuses = self.alpha * (share @ np.sqrt(variance) if self.bonus == "mean" else np.sqrt(share @ variance))
        best = np.argmax(estimates + bonuses, axis=0)  # for each arm, the cluster that scores it highest
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
                if i not in N and self.added_at[i] >= self.returned[s] and self.accepts_late_user(s, i, B):
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

    def accepts_late_user(self, s, i, B):
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
            self.added_at.append(self.t)
        self.users.add(count)
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
    """ELOC. Densities are computed with inverses and determinants, and all sums over users in every round.

    Components 0 … K − 1 are the seeds' neighbourhoods, K is "everyone", and K + 1 is the population.
    """

    def __init__(self, n, d, seeds, beta, memory, ties, generator, screen="noise", robust=True, theory=(0.5, 1.0, 0.1)):
        memories = [None, 300, 100] if memory == "auto" else [memory]
        self.retention = np.array([1.0 if rounds is None else 1 - 1 / rounds for rounds in memories])
        self.scores, self.in_use = np.zeros(len(memories)), 0  # sums of all memories are kept; one is used
        self.d, self.seeds, self.beta, self.K = d, list(seeds), beta, len(seeds)
        self.ties, self.generator, self.screen, self.robust, self.theory = ties, [generator], screen, robust, theory
        self.n, self.m = 0, np.zeros(0, dtype=int)
        self.all_G, self.all_b = np.zeros((0, len(memories), d, d)), np.zeros((0, len(memories), d))
        self.q = np.zeros((0, self.K + 1))  # every user has weight 1 in the component "everyone"
        self.W, self.h = np.zeros((0, d, d)), np.zeros((0, d))  # terms of the least squares for μ_0
        self.gap = np.zeros(0)  # log evidence of the population minus that of everyone
        self.add_users(n)
        self.pi = np.array([0.6 / self.K] * self.K + [0.1, 0.3])
        self.L = np.array([-8.0, 0.0, -2.0])  # log weights of the gate: everyone, population, mixture
        self.t, self.cached_posterior = 0, (None, None)
        self.rewards, self.residuals, self.n_residuals = [], np.zeros((9, 3)), 0
        self.limit, self.inside = math.inf, 1.0
        self.location, self.x_sum = 0.0, np.zeros(d)
        self.set_scale()
        self.mu, self.C, self.v = self.solve_centres()
        self.solved_trace = np.zeros(self.K + 1)

    @property
    def G(self):
        return self.all_G[:, self.in_use]

    @property
    def b(self):
        return self.all_b[:, self.in_use]

    @property
    def used(self):
        """Whether each feature was not 0 in all contexts so far; all features before the first of them."""
        is_used = np.diag(self.G.sum(axis=0)) > 0
        return is_used if is_used.any() else ~is_used

    def mean_diagonal(self, matrices):
        return np.diagonal(matrices, axis1=-2, axis2=-1)[..., self.used].mean(axis=-1)

    def set_scale(self):
        """Estimate the variance of rewards, and set the noise and the population to their initial values."""
        r = np.array(self.rewards)
        self.scale = r.var() if len(r) else 0.0
        if len(set(self.rewards)) > 2:
            deviation = np.mean([abs(r[t] - r[: t + 1].mean()) for t in range(len(r))])
            self.scale = (1.25 * deviation) ** 2
        if self.scale == 0.0:
            self.scale = 0.25
        self.noise, self.Sigma0 = self.scale, 16 * self.scale * np.eye(self.d) / self.used.sum()
        self.solve_population(int((self.m > 0).sum()))

    def solve_population(self, n_served):
        """Solve for μ_0 and its covariance, and shrink Σ_0."""
        self.C0 = np.linalg.inv(self.W.sum(axis=0) + np.eye(self.d) / (4 * self.scale))
        self.mu0 = self.C0 @ self.h.sum(axis=0)
        users = self.used.sum() ** 2 / 45
        weight = users / (users + n_served)
        self.Sigma = (1 - weight) * self.Sigma0 + weight * self.mean_diagonal(self.Sigma0) * np.eye(self.d)

    def within(self):
        """Return the variance of users around the centres."""
        return 0.02 * self.mean_diagonal(self.Sigma0) * np.array([1.0] * self.K + [0.01])

    def solve_centres(self, without=None):
        """Return centres, their covariances and the rounded prior variances, without one user or with all."""
        q = self.q.copy()
        if without is not None:
            q[without] = 0.0
        A, c = np.einsum("is,iab->sab", q, self.G), np.einsum("is,ia->sa", q, self.b)
        prior = self.noise * np.linalg.inv(self.Sigma)
        inverse = np.linalg.inv(A + prior)
        C = self.noise * inverse
        v = self.within() + 0.5 * self.mean_diagonal(C)
        uncertain = inverse @ prior @ self.C0 @ prior @ inverse  # because μ_0 is uncertain
        return np.einsum("sab,sb->sa", inverse, c + prior @ self.mu0), C + uncertain, 2.0 ** np.floor(np.log2(v) + 0.5)

    def component_posteriors(self, i, mu, C, v):
        """Return each component's log evidence for user i, and mean and covariances of θ under it.

        There are two covariances: of θ around its mean for a known centre, and the part due to the uncertain centre.
        """
        G, b, noise = self.G[i], self.b[i], self.noise
        mu = np.concatenate([mu, [self.mu0]])
        prior = np.concatenate([v[:, None, None] * np.eye(self.d), [self.Sigma]])
        g = (b - mu @ G) / noise
        V = np.linalg.inv(G / noise + np.linalg.inv(prior))
        log_det = np.linalg.slogdet(np.eye(self.d) + G @ prior / noise)[1]
        misfit = np.einsum("sa,ab,sb->s", mu, G, mu) - 2 * mu @ b
        shift = np.einsum("sab,sb->sa", V, g)
        S = V @ np.linalg.inv(prior)
        uncertain = S @ np.concatenate([C, [self.C0]]) @ S.transpose(0, 2, 1)
        is_small = np.append(np.trace(C, axis1=1, axis2=2) / v, np.trace(np.linalg.inv(self.Sigma) @ self.C0)) <= 0.02
        uncertain[is_small] = 0.0
        return -0.5 * log_det - misfit / (2 * noise) + 0.5 * (g * shift).sum(axis=1), mu + shift, V, uncertain

    def components(self, i, full=True):
        results = self.component_posteriors(i, self.mu, self.C, self.v)
        evidence = results[0]
        evidence[: self.K][np.array(self.seeds) < 0] = -math.inf  # the seed rests
        if not full:
            evidence[: self.K][self.q[i, : self.K] == 0.0] = -math.inf
        share = self.q[i] * np.trace(self.G[i])
        large = (share > 0) & (share > 0.0213 * (self.q.T @ np.trace(self.G, axis1=1, axis2=2)))
        large &= evidence[:-1] >= evidence.max() - 16
        if large.any():  # leave the user out
            for with_user, without in zip(
                results, self.component_posteriors(i, *self.solve_centres(without=i)), strict=True
            ):
                with_user[:-1][large] = without[:-1][large]
        return results

    def posterior(self, i):
        # Called twice per round, before the choice and before learning, so it is cached until something is learned.
        if self.cached_posterior[0] != (i, self.t):
            self.cached_posterior = (i, self.t), self.compute_posterior(i)
        return self.cached_posterior[1]

    def compute_posterior(self, i):
        full = self.m[i] < 16 or self.m[i] % 8 == 7
        evidence, means, covariances, uncertain = self.components(i, full)
        responsibilities = self.pi * np.exp(evidence - evidence.max())
        responsibilities[evidence < evidence.max() - 16] = 0.0
        responsibilities[responsibilities < 1e-3 * responsibilities.max()] = 0.0
        responsibilities /= responsibilities.sum()
        L = self.L - [max(0.0, self.gap.sum() - 5), 0.0, 0.0]
        gate = np.exp(L - L.max())
        gate /= gate.sum()
        weight = gate[2] * responsibilities
        weight[-2:] += gate[:2]
        theta = weight @ means
        V = np.einsum("s,sab->ab", np.where(weight > 1e-4, weight, 0.0), covariances)
        V += (weight * (means - theta).T) @ (means - theta)
        V += np.einsum("s,sab->ab", np.where(weight > 0.02, weight, 0.0), uncertain)
        return theta, V, responsibilities, means, covariances, evidence, weight

    def evaluate(self, i, X):
        theta, V, *_ = self.posterior(i)
        self.offered = i, X
        estimate, bonus = ucb(theta, V, X, self.beta * math.sqrt(math.log(2 + self.m[i])))
        return estimate + self.location, bonus

    def choose(self, scores):
        arm = super().choose(scores)
        if self.screen == "off":
            return arm
        i, X = self.offered
        A = np.eye(self.d) + self.G[i]
        if self.screen == "theory":
            sigma, bound, delta = self.theory
            own = np.linalg.solve(A, self.b[i])
            risk = 6 * delta / (math.pi * (i + 1)) ** 2
            width = sigma * math.sqrt(2 * math.log(1 / risk) + np.linalg.slogdet(A)[1]) + bound
        else:
            own, width = np.linalg.solve(A, self.b[i] + self.mu0), 2 * math.sqrt(self.noise)
        estimate, bonus = ucb(own, np.linalg.inv(A), X, width)
        upper = estimate + bonus
        return arm if upper[arm] >= upper.max() - 2 * bonus[arm] - 1e-9 else super().choose(upper)

    def update(self, i, x, r):
        theta, V, responsibilities, means, covariances, evidence, weight = self.posterior(i)
        self.t += 1
        self.m[i] += 1
        self.rewards.append(r)
        n_served, noise = int((self.m > 0).sum()), self.noise
        is_open = self.t <= 24 or len(set(self.rewards[:-1])) < 2
        r -= self.location
        spread = math.sqrt(1 + x @ V @ x / noise)
        if not is_open:
            r = self.limit_outliers(r, r - theta @ x, spread)
            self.score_memories(i, x, r, weight, n_served, 2 * (noise + x @ V @ x))
            predictions = np.array([means[-2] @ x, means[-1] @ x, responsibilities @ means @ x])
            self.L = (1 - 1 / min(60 * n_served, 2 + 0.2 * self.t)) * self.L - (r - predictions) ** 2 / (2 * noise)
            self.gap[i] = evidence[-1] - evidence[-2]
            self.pi += (responsibilities - self.pi) / (n_served + 5)
            self.pi = np.maximum(self.pi, [0.02 / self.K * (s >= 0) for s in self.seeds] + [0.02, 0.02])
            self.pi /= self.pi.sum()
        self.all_G[i] = self.retention[:, None, None] * self.all_G[i] + np.outer(x, x)
        self.all_b[i] = self.retention[:, None] * self.all_b[i] + r * x
        self.store_weights(i, responsibilities)
        if self.m[i] <= 32 or self.m[i] % (4 if self.m[i] <= 128 else 16) == 0:
            self.learn_population(i, means[-1], covariances[-1], n_served)
        moved = False
        if is_open:
            self.x_sum += x
            self.set_scale()
            if self.t >= 24 and len(set(self.rewards)) > 1 and self.screen != "theory":
                moved = abs(np.mean(self.rewards)) > 3 * math.sqrt(self.scale)
            if moved:
                self.subtract_location(np.mean(self.rewards))
        else:
            target = ((r - theta @ x) / spread) ** 2
            self.noise = max(noise + 2 / (self.t + 22) * (target - noise), 1e-6 * self.scale)
            if len(set(self.rewards)) < 3:
                self.noise = max(self.noise, 0.6 * np.var(self.rewards))
            moved = self.select_memory()
        trace = self.q.T @ np.trace(self.G, axis1=1, axis2=2)
        due = np.abs(trace - self.solved_trace) > 0.0123 * trace
        due[self.t % (self.K + 1)] = True
        due |= moved
        due[: self.K] &= np.array(self.seeds) >= 0
        mu, C, v = self.solve_centres()
        self.mu[due], self.C[due], self.v[due], self.solved_trace[due] = mu[due], C[due], v[due], trace[due]
        if i in self.seeds:
            if self.m[i] >= 16 and self.m[i] % 8 == 0:
                self.merge(self.seeds.index(i), evidence)
        elif self.m[i] >= 16 and self.m[i] & (self.m[i] - 1) == 0 and responsibilities[-1] > 0.5:
            self.reseed(i)

    def score_memories(self, i, x, r, weight, n_served, double_variance):
        """Update the score of each memory with its prediction from the population and from the user's pool."""
        if len(self.scores) == 1:
            return
        share = weight[-1] if weight[-1] > 0.02 else 0.0
        share = 1.0 if weight[-1] >= 0.98 else share
        pool_weights = np.where(weight[:-1] > 0.02, weight[:-1], 0.0)
        pool_weights /= max(pool_weights.sum(), 0.02)
        prior = np.linalg.inv(self.Sigma)
        for c in range(len(self.scores)):
            G, b = self.all_G[:, c], self.all_b[:, c]
            alone = np.linalg.solve(G[i] / self.noise + prior, b[i] / self.noise + prior @ self.mu0)
            A = np.einsum("s,is,iab->ab", pool_weights, self.q, G) + self.noise * prior
            centre = np.linalg.solve(
                A, np.einsum("s,is,ia->a", pool_weights, self.q, b) + self.noise * prior @ self.mu0
            )
            v = self.within()[0] + 0.5 * self.noise / self.mean_diagonal(A)
            pooled = np.linalg.solve(G[i] / self.noise + np.eye(self.d) / v, b[i] / self.noise + centre / v)
            error = r - (share * alone + (1 - share) * pooled) @ x
            retention = 1 - 1 / min(120 * n_served, 2 + 0.4 * self.t)
            self.scores[c] = retention * self.scores[c] - error**2 / double_variance

    def select_memory(self):
        """Use the memory with the highest score; a shorter memory needs a lead. Return whether the memory changed."""
        before = self.in_use
        self.in_use = int(np.argmax(self.scores - 8 * (self.retention < self.retention[before])))
        return self.in_use != before

    def subtract_location(self, location):
        """Change the sums as if ``location`` had been subtracted from all rewards."""
        self.location, total = location, self.G.sum(axis=0)
        u = np.linalg.solve(total + 1e-9 * np.trace(total) * np.eye(self.d), self.x_sum)
        self.all_b -= location * self.all_G @ u
        self.h -= location * self.W @ u
        self.set_scale()

    def limit_outliers(self, r, error, spread):
        """Return the reward to learn; choose the limit of residuals with the smallest variance."""
        if not self.robust or len(set(self.rewards)) < 3:
            return r
        limits = np.array([*(0.1 * 2 ** (0.75 * np.arange(8)) * math.sqrt(self.scale)), math.inf])
        residual = error / spread
        clipped = np.clip(residual, -limits, limits)
        rows = np.stack([abs(residual) < limits, clipped, clipped**2], axis=1)
        self.n_residuals += 1
        self.residuals += (rows - self.residuals) / self.n_residuals
        if self.n_residuals >= 64 and self.n_residuals % 16 == 0:
            self.limit, self.inside = math.inf, 1.0
            share, mean, square = self.residuals.T
            with np.errstate(divide="ignore", invalid="ignore"):
                bias = ((mean - mean[-1]) / share) ** 2 - 2 * (square[-1] - square) / self.n_residuals
                value = square / share**2 + 400 * np.maximum(bias, 0)
            value[~(share > 0.5)] = math.inf
            best = int(np.argmin(value[:-1]))
            if value[best] < 0.85 * square[-1]:
                self.limit, self.inside = limits[best], share[best]
        if self.limit == math.inf:
            return r
        return r - error + float(np.clip(error, -self.limit * spread, self.limit * spread)) / self.inside

    def correct(self, i, x, learned, r):
        self.b[i] += (r - learned) * x
        self.cached_posterior = (None, None)

    def merge(self, s, evidence):
        """Merge neighbourhood s with its first twin: one that explains the seed user, with about the same centre."""
        for r in np.flatnonzero(evidence[: self.K] > evidence[-1] + 2):
            difference = self.mu[s] - self.mu[r]
            covariance = self.C[s] + self.C[r] + self.within()[0] * np.eye(self.d)
            if r != s and difference @ np.linalg.solve(covariance, difference) < 1.5 * self.used.sum():
                self.q[:, r] = np.minimum(self.q[:, r] + self.q[:, s], 1.0)
                self.pi[r] += self.pi[s]
                self.q[:, s], self.pi[s], self.seeds[s] = 0.0, 0.0, -1
                self.solve_neighbourhood(r)
                return

    def reseed(self, i):
        """Move one seed to user i: an inactive seed, or the least served of those whose centres are close to another.

        A seed that has rested starts with its initial prior weight.
        """
        gap = np.linalg.norm(self.mu[:-1, None] - self.mu[None, :-1], axis=2) + np.diag([math.inf] * self.K)
        redundant = np.flatnonzero(gap.min(axis=1) ** 2 < self.used.sum() * self.within()[0])
        if -1 in self.seeds:
            s = self.seeds.index(-1)
            self.pi[s] = 0.6 / self.K
        elif redundant.size == 0:
            return
        else:
            s = min(redundant, key=lambda c: self.m[self.seeds[c]])
        self.q[:, s] = 0.0
        self.q[i, : self.K] = 0.0
        self.q[i, s] = 1.0
        self.seeds[s] = i
        self.solve_neighbourhood(s)

    def solve_neighbourhood(self, s):
        mu, C, v = self.solve_centres()
        self.mu[s], self.C[s], self.v[s] = mu[s], C[s], v[s]
        self.solved_trace[s] = self.q[:, s] @ np.trace(self.G, axis1=1, axis2=2)

    def store_weights(self, i, responsibilities):
        """Store the eight largest weights (ties in order from seed i mod K); a seed has weight 1 in its own cluster."""
        own = [self.seeds.index(i)] if i in self.seeds else []
        largest = []
        for s in [(i + z) % self.K for z in range(self.K)]:
            if responsibilities[s] > 0 and s not in own:
                index = len(largest)
                while index > 0 and responsibilities[s] > responsibilities[largest[index - 1]] * (1 + 1e-6):
                    index -= 1
                largest.insert(index, s)
                largest = largest[: 8 - len(own)]
        self.q[i, : self.K] = 0.0
        self.q[i, largest] = responsibilities[largest]
        self.q[i, own] = 1.0

    def learn_population(self, i, mean, V, n_served):
        # Generalized least squares: the estimate of user i has covariance σ² G⁻¹ + Σ around μ_0.
        prior = np.linalg.inv(self.Sigma)
        after = np.linalg.inv(self.G[i] / self.noise + prior)
        self.W[i], self.h[i] = prior - prior @ after @ prior, prior @ after @ self.b[i] / self.noise
        target = V + np.outer(mean - self.mu0, mean - self.mu0)
        share = 2 / (n_served + 2)
        target = (1 - share) * target + (1e-6 + 4 * share / self.used.sum()) * self.scale * np.eye(self.d)
        self.Sigma0 = self.Sigma0 + (target - self.Sigma0) / (n_served + 5)
        self.solve_population(n_served)

    def add_users(self, count):
        for name in ("all_G", "all_b", "m", "q", "W", "h", "gap"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros((count, *old.shape[1:]), old.dtype)]))
        self.q[self.n :, self.K] = 1.0
        self.n += count

    def groups(self):
        evidence = np.array([self.components(i)[0] for i in range(self.n)])  # (n, K + 2)
        is_member = evidence >= evidence.max(axis=1, keepdims=True) - math.log(20)
        for c, s in enumerate(self.seeds):
            if s >= 0:
                is_member[s, c] = True
        found = {(s, frozenset(np.flatnonzero(is_member[:, c]).tolist())) for c, s in enumerate([*self.seeds, None])}
        return {(s, members) for s, members in found if members}
