package backoff_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/internal/require"
)

// TestSourceTexts compares the shortest and the longest wait of each policy
// with the numbers in its source text.
func TestSourceTexts(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	type wait struct{ least, most time.Duration }
	google := []wait{{1 * s, 2 * s}, {2 * s, 3 * s}, {4 * s, 5 * s}, {8 * s, 9 * s}, {16 * s, 17 * s}, {32 * s, 32 * s}, {32 * s, 32 * s}}
	tests := []struct {
		name  string
		text  string
		waits []wait
	}{
		{"cloudstorage", "https://cloud.google.com/storage/docs/retry-strategy", google},
		{"memorystore", "https://cloud.google.com/memorystore/docs/redis/exponential-backoff", google},
		{"bidmanager", "https://developers.google.com/bid-manager/quotas#exponential-backoff", google[:5]},
		{"scaled", "100 ms * 2^n, times 0.5 to 1.5, at most 30 s", []wait{
			{50 * ms, 150 * ms}, {100 * ms, 300 * ms}, {200 * ms, 600 * ms}, {400 * ms, 1200 * ms}, {800 * ms, 2400 * ms},
			{1600 * ms, 4800 * ms}, {3200 * ms, 9600 * ms}, {6400 * ms, 19200 * ms}, {12800 * ms, 30 * s}, {15 * s, 30 * s}, {15 * s, 30 * s},
		}},
		{"none", "1 s, for comparison", []wait{{s, s}, {s, s}, {s, s}}},
		{"exponential", "without jitter, for comparison", []wait{{s, s}, {2 * s, 2 * s}, {4 * s, 4 * s}, {8 * s, 8 * s}, {16 * s, 16 * s}, {32 * s, 32 * s}, {32 * s, 32 * s}}},
		{"full", "https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/", []wait{{0, s}, {0, 2 * s}, {0, 4 * s}, {0, 8 * s}, {0, 16 * s}, {0, 32 * s}, {0, 32 * s}}},
		{"equal", "same", []wait{{500 * ms, s}, {s, 2 * s}, {2 * s, 4 * s}, {4 * s, 8 * s}, {8 * s, 16 * s}, {16 * s, 32 * s}, {16 * s, 32 * s}}},
		{"decorrelated", "same", []wait{{s, 3 * s}, {s, 9 * s}, {s, 27 * s}, {s, 32 * s}, {s, 32 * s}}},
	}
	if len(tests) != len(backoff.Names()) {
		t.Errorf("tests cover %d policies, want %d", len(tests), len(backoff.Names()))
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			policy := named(t, test.name)
			if err := policy.Validate(); err != nil {
				t.Error(err)
			}
			for n, want := range test.waits {
				least, most := backoff.Limit, time.Duration(0)
				for random := range 1000 {
					wait := policy.Delay(n, float64(random)/1000)
					least, most = min(least, wait), max(most, wait)
				}
				most = max(most, policy.Delay(n, almostOne))
				if least < want.least || most > want.most {
					t.Errorf("retry %d waits %v to %v, %s has %v to %v", n, least, most, test.text, want.least, want.most)
				}
				// The waits nearly reach the ends of the range. A decorrelated
				// series reaches them too rarely to check.
				if slack := (want.most - want.least) / 50; policy.Jitter != backoff.DecorrelatedJitter && (least > want.least+slack || most < want.most-slack) {
					t.Errorf("retry %d waits only %v to %v, %s has %v to %v", n, least, most, test.text, want.least, want.most)
				}
			}
		})
	}
}

func named(t *testing.T, name string) backoff.Policy {
	t.Helper()
	p, err := backoff.Named(name)
	require.NoError(t, err)
	return p
}

func TestNamedUnknown(t *testing.T) {
	_, err := backoff.Named("fibonacci")
	if err == nil || !strings.Contains(err.Error(), `no policy "fibonacci"`) {
		t.Fatalf("Named(fibonacci) = %v", err)
	}
	for _, name := range backoff.Names() {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error %q does not list %s", err, name)
		}
	}
	if names := backoff.Names(); !slices.Contains(names, "none") || slices.Contains(names, "") {
		t.Errorf("Names() = %q", names)
	}
}
