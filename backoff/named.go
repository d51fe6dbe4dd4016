package backoff

import (
	"fmt"
	"strings"
	"time"
)

// CloudStorage returns Cloud Storage's retry strategy for uploads, downloads
// and metadata: min(2^n s + random 0..1000 ms, 32 s), until the budget is spent
// (https://cloud.google.com/storage/docs/retry-strategy). It is the zero Policy
// with its defaults filled in.
func CloudStorage() Policy {
	return Policy{Initial: defaultInitial, Multiplier: defaultMultiplier, Maximum: defaultMaximum}
}

// Memorystore returns the retry strategy of Memorystore for Redis for 5xx and
// 429, which is the same as CloudStorage
// (https://cloud.google.com/memorystore/docs/redis/exponential-backoff).
func Memorystore() Policy { return CloudStorage() }

// BidManager returns the retry strategy of the Bid Manager API: 1, 2, 4, 8 and
// 16 s, each plus random 0..1000 ms, then an error
// (https://developers.google.com/bid-manager/quotas#exponential-backoff). The
// zero [Budget] stops after these five waits. With a larger Budget, every later
// wait is 32 s.
func BidManager() Policy { return CloudStorage() }

// Scaled returns a policy for batches that succeed in part: the service is up,
// and the first retry should come soon. The wait is min(100 ms * 2^n, 30 s),
// times a random factor of 0.5 to 1.5, and at most 30 s. The first retries wait
// 50..150, 100..300 and 200..600 ms.
func Scaled() Policy {
	return Policy{Initial: 100 * time.Millisecond, Multiplier: 2, Maximum: 30 * time.Second, Jitter: ScaledJitter}
}

var named = []struct {
	name   string
	policy Policy
}{
	{"none", Policy{Initial: time.Second, Multiplier: 1, Jitter: NoJitter}},
	{"exponential", Policy{Jitter: NoJitter}},
	{"cloudstorage", CloudStorage()},
	{"memorystore", Memorystore()},
	{"bidmanager", BidManager()},
	{"scaled", Scaled()},
	{"full", Policy{Jitter: FullJitter}},
	{"equal", Policy{Jitter: EqualJitter}},
	{"decorrelated", Policy{Multiplier: 3, Jitter: DecorrelatedJitter}},
}

// Named returns the policy with the given name:
//
//	none          1 s before every retry, no jitter
//	exponential   1, 2, 4, ... 32 s, no jitter
//	cloudstorage  CloudStorage
//	memorystore   Memorystore
//	bidmanager    BidManager
//	scaled        Scaled
//	full          exponential with FullJitter
//	equal         exponential with EqualJitter
//	decorrelated  DecorrelatedJitter from 1 s, times 3, up to 32 s
//
// The error for any other name lists these names.
func Named(name string) (Policy, error) {
	for _, known := range named {
		if known.name == name {
			return known.policy, nil
		}
	}
	return Policy{}, fmt.Errorf("backoff: no policy %q: choose one of %s", name, strings.Join(Names(), ", "))
}

// Names returns the names that [Named] accepts, in the order of its
// documentation.
func Names() []string {
	names := make([]string, 0, len(named))
	for _, known := range named {
		names = append(names, known.name)
	}
	return names
}
