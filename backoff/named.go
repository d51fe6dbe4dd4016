package backoff

import (
	"fmt"
	"strings"
	"time"
)

// cloudStorage is the zero Policy with its defaults filled in.
var cloudStorage = Policy{Initial: defaultInitial, Multiplier: defaultMultiplier, Maximum: defaultMaximum}

var named = []struct {
	name   string
	policy Policy
}{
	{"none", Policy{Initial: time.Second, Multiplier: 1, Jitter: NoJitter}},
	{"exponential", Policy{Jitter: NoJitter}},
	{"cloudstorage", cloudStorage},
	{"memorystore", cloudStorage},
	{"bidmanager", cloudStorage},
	{"scaled", Policy{Initial: 100 * time.Millisecond, Multiplier: 2, Maximum: 30 * time.Second, Jitter: ScaledJitter}},
	{"full", Policy{Jitter: FullJitter}},
	{"equal", Policy{Jitter: EqualJitter}},
	{"decorrelated", Policy{Multiplier: 3, Jitter: DecorrelatedJitter}},
}

// Named returns the policy with the given name:
//
//	none          1 s before every retry, no jitter
//	exponential   1, 2, 4, ... 32 s, no jitter
//	cloudstorage  the zero Policy: 1, 2, 4, ... 32 s, plus 0..1000 ms, at most 32 s
//	memorystore   the same, for Memorystore for Redis
//	bidmanager    the same, for the Bid Manager API, which asks for 5 retries, as the zero Budget does
//	scaled        100 ms * 2^n, times 0.5 to 1.5, at most 30 s
//	full          exponential with FullJitter
//	equal         exponential with EqualJitter
//	decorrelated  DecorrelatedJitter from 1 s, times 3, up to 32 s
//
// The policy scaled is for batches that succeed in part: the service is up, so that the
// first retry should be soon. The error for any other name lists these names.
//
// Sources:
// https://cloud.google.com/storage/docs/retry-strategy,
// https://cloud.google.com/memorystore/docs/redis/exponential-backoff,
// https://developers.google.com/bid-manager/quotas#exponential-backoff.
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
