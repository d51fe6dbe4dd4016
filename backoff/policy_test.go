package backoff_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/internal/testsize"
)

// almostOne is the largest number that a random source of [0, 1) returns.
var almostOne = math.Nextafter(1, 0)

func TestDelay(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	tests := []struct {
		name   string
		policy backoff.Policy
		random float64
		want   []time.Duration // for n = 0, 1, 2, ...
	}{
		{"zero, least", backoff.Policy{}, 0, []time.Duration{1 * s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 32 * s, 32 * s}},
		{"zero, half", backoff.Policy{}, 0.5, []time.Duration{1500 * ms, 2500 * ms, 4500 * ms, 8500 * ms, 16500 * ms, 32 * s, 32 * s}},
		{"zero, quarter", backoff.Policy{}, 0.25, []time.Duration{1250 * ms, 2250 * ms}},
		{"maximum cuts the jitter too", backoff.Policy{Maximum: 4200 * ms}, 0.5, []time.Duration{1500 * ms, 2500 * ms, 4200 * ms, 4200 * ms}},
		{"maximum under the initial wait", backoff.Policy{Maximum: 300 * ms}, 0.5, []time.Duration{300 * ms, 300 * ms}},
		{"constant", backoff.Policy{Multiplier: 1, Jitter: backoff.NoJitter}, 0.5, []time.Duration{s, s, s}},
		{"no jitter", backoff.Policy{Jitter: backoff.NoJitter}, 0.9, []time.Duration{1 * s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 32 * s}},
		{"initial and multiplier", backoff.Policy{Initial: 10 * ms, Multiplier: 3, Jitter: backoff.NoJitter}, 0, []time.Duration{10 * ms, 30 * ms, 90 * ms, 270 * ms}},
		{"full, least", backoff.Policy{Jitter: backoff.FullJitter}, 0, []time.Duration{0, 0, 0}},
		{"full, half", backoff.Policy{Jitter: backoff.FullJitter}, 0.5, []time.Duration{500 * ms, 1 * s, 2 * s, 4 * s, 8 * s, 16 * s, 16 * s}},
		{"equal, least", backoff.Policy{Jitter: backoff.EqualJitter}, 0, []time.Duration{500 * ms, 1 * s, 2 * s, 4 * s, 8 * s, 16 * s, 16 * s}},
		{"equal, half", backoff.Policy{Jitter: backoff.EqualJitter}, 0.5, []time.Duration{750 * ms, 1500 * ms, 3 * s, 6 * s, 12 * s, 24 * s, 24 * s}},
		{"scaled, least", backoff.Policy{Jitter: backoff.ScaledJitter}, 0, []time.Duration{500 * ms, 1 * s, 2 * s}},
		{"scaled, half", backoff.Policy{Jitter: backoff.ScaledJitter}, 0.5, []time.Duration{1 * s, 2 * s, 4 * s}},
		{"scaled, capped again", backoff.Policy{Jitter: backoff.ScaledJitter}, 0.9, []time.Duration{1400 * ms, 2800 * ms, 5600 * ms, 11200 * ms, 22400 * ms, 32 * s}},
	}
	for _, test := range tests {
		for n, want := range test.want {
			if got := test.policy.Delay(n, test.random); got != want {
				t.Errorf("%s: Delay(%d, %v) = %v, want %v", test.name, n, test.random, got, want)
			}
		}
	}
}

// checkDelay checks the guarantee of Delay for any policy, retry and random
// number, valid or not.
func checkDelay(t *testing.T, p backoff.Policy, n int, random float64) {
	t.Helper()
	got := p.Delay(n, random)
	if got < 0 || got >= backoff.Limit {
		t.Errorf("%+v.Delay(%d, %v) = %v, want at least 0 and under %v", p, n, random, got, backoff.Limit)
	}
	if p.Validate() == nil && p.Maximum > 0 && got > p.Maximum {
		t.Errorf("%+v.Delay(%d, %v) = %v, want at most %v", p, n, random, got, p.Maximum)
	}
}

func TestDelayAlwaysUnderLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("checks many values")
	}
	durations := []time.Duration{math.MinInt64, -1, 0, 1, time.Second, backoff.Limit - 1, backoff.Limit, backoff.Limit + 1, math.MaxInt64}
	multipliers := []float64{math.Inf(-1), -1, 0, 0.5, 1, 1.0000001, 2, 1e300, math.Inf(1), math.NaN()}
	retries := []int{math.MinInt, -1, 0, 1, 62, 63, 64, 1 << 20, math.MaxInt}
	randoms := []float64{math.Inf(-1), -1, 0, 0.5, almostOne, 1, 2, math.Inf(1), math.NaN()}
	for jitter := backoff.AdditiveJitter - 1; jitter <= backoff.DecorrelatedJitter+1; jitter++ {
		for _, initial := range durations {
			for _, maximum := range durations {
				for _, multiplier := range multipliers {
					p := backoff.Policy{Initial: initial, Multiplier: multiplier, Maximum: maximum, Jitter: jitter}
					for _, n := range retries {
						for _, random := range randoms {
							checkDelay(t, p, n, random)
						}
					}
				}
			}
		}
	}
}

func FuzzDelay(f *testing.F) {
	f.Add(int64(0), 0.0, int64(0), 0, 0, 0.0)
	f.Add(int64(time.Second), 2.0, int64(32*time.Second), 5, 5, 0.999)
	f.Fuzz(func(t *testing.T, initial int64, multiplier float64, maximum int64, jitter, n int, random float64) {
		p := backoff.Policy{Initial: time.Duration(initial), Multiplier: multiplier, Maximum: time.Duration(maximum), Jitter: backoff.Jitter(jitter)}
		checkDelay(t, p, n, random)
	})
}

// TestDecorrelatedSeries checks that one random number gives one series of the
// article: every wait is between Initial and three times the previous wait.
func TestDecorrelatedSeries(t *testing.T) {
	p := backoff.Policy{Initial: 100 * time.Millisecond, Multiplier: 3, Maximum: 10 * time.Second, Jitter: backoff.DecorrelatedJitter}
	seed := testsize.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 1000 {
		random, before := r.Float64(), p.Initial
		for n := range 20 {
			got := p.Delay(n, random)
			if most := min(3*before+1, p.Maximum); got < p.Initial || got > most {
				t.Fatalf("Delay(%d, %v) = %v, want from %v to %v", n, random, got, p.Initial, most)
			}
			before = got
		}
	}
}

// TestDecorrelatedDistribution compares the distribution of Delay with that of
// the article's series, which is computed from its start for each sample.
func TestDecorrelatedDistribution(t *testing.T) {
	if testing.Short() {
		t.Skip("checks many values")
	}
	const samples = 20000 // sqrt(2/samples) is 0.01
	p := backoff.Policy{Initial: time.Second, Multiplier: 3, Maximum: 32 * time.Second, Jitter: backoff.DecorrelatedJitter}
	r := rand.New(rand.NewPCG(1, 2))
	article := func(n int) float64 {
		wait := 1.0
		for range n + 1 {
			wait = min(32, 1+r.Float64()*(wait*3-1))
		}
		return wait
	}
	for _, n := range []int{0, 1, 2, 5, 10, 63, 64, 1000} {
		var got, want []float64
		for range samples {
			got = append(got, p.Delay(n, r.Float64()).Seconds())
			want = append(want, article(n))
		}
		slices.Sort(got)
		slices.Sort(want)
		// The largest distance between the two distributions exceeds this bound
		// once in 1000 runs (Kolmogorov-Smirnov test).
		const most = 1.95 * 0.01
		for i, wait := range want {
			share, _ := slices.BinarySearch(got, wait)
			if d := math.Abs(float64(share-i)) / samples; d > most && wait < p.Maximum.Seconds() {
				t.Errorf("n = %d: %.3f of the waits are under %.3f s, want %.3f", n, float64(share)/samples, wait, float64(i)/samples)
				break
			}
		}
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name   string
		policy backoff.Policy
		want   string // part of the error, "" for none
	}{
		{"zero", backoff.Policy{}, ""},
		{"longest", backoff.Policy{Initial: backoff.Limit - 1, Maximum: backoff.Limit - 1}, ""},
		{"constant", backoff.Policy{Multiplier: 1}, ""},
		{"initial over maximum", backoff.Policy{Initial: 2 * time.Second, Maximum: time.Second}, ""},
		{"every jitter", backoff.Policy{Jitter: backoff.DecorrelatedJitter}, ""},
		{"maximum of 64 s", backoff.Policy{Maximum: 64 * time.Second}, "maximum wait 1m4s must be shorter than 1m0s"},
		{"maximum at the limit", backoff.Policy{Maximum: backoff.Limit}, "maximum wait 1m0s must be shorter than 1m0s"},
		{"initial at the limit", backoff.Policy{Initial: backoff.Limit}, "initial wait 1m0s must be shorter than 1m0s"},
		{"negative initial", backoff.Policy{Initial: -1}, "initial wait -1ns is negative"},
		{"negative maximum", backoff.Policy{Maximum: -time.Second}, "maximum wait -1s is negative"},
		{"shrinking", backoff.Policy{Multiplier: 0.5}, "multiplier 0.5 is less than 1"},
		{"negative multiplier", backoff.Policy{Multiplier: -2}, "multiplier -2 is less than 1"},
		{"not a number", backoff.Policy{Multiplier: math.NaN()}, "multiplier is not a finite number"},
		{"infinite", backoff.Policy{Multiplier: math.Inf(1)}, "multiplier is not a finite number"},
		{"unknown jitter", backoff.Policy{Jitter: 6}, "unknown jitter 6"},
		{"negative jitter", backoff.Policy{Jitter: -1}, "unknown jitter -1"},
	}
	for _, test := range tests {
		if err := test.policy.Validate(); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: Validate() = %v, want %q", test.name, err, test.want)
		}
	}
}

func TestWait(t *testing.T) {
	const s = time.Second
	tests := []struct {
		n          int
		retryAfter time.Duration
		want       time.Duration
	}{
		{0, 0, 1 * s},
		{0, -5 * s, 1 * s},
		{3, 5 * s, 8 * s},
		{3, 20 * s, 20 * s},
		{9, 40 * s, 40 * s}, // longer than Maximum, because the server asked for it
		{0, 58 * s, 58 * s},
		{0, 59 * s, 59 * s},
		{0, 60 * s, 59 * s},
		{0, 24 * time.Hour, 59 * s},
		{0, math.MaxInt64, 59 * s},
	}
	for _, test := range tests {
		if got := (backoff.Policy{}).Wait(test.n, 0, test.retryAfter); got != test.want {
			t.Errorf("Wait(%d, 0, %v) = %v, want %v", test.n, test.retryAfter, got, test.want)
		}
	}
}

func TestStrings(t *testing.T) {
	for value, want := range map[fmt.Stringer]string{
		backoff.AdditiveJitter: "additive", backoff.NoJitter: "none", backoff.FullJitter: "full",
		backoff.EqualJitter: "equal", backoff.ScaledJitter: "scaled", backoff.DecorrelatedJitter: "decorrelated",
		backoff.Jitter(-1): "Jitter(-1)", backoff.Jitter(6): "Jitter(6)",
		backoff.Permanent: "permanent", backoff.Transient: "transient", backoff.Credentials: "credentials", backoff.Verdict(9): "Verdict(9)",
	} {
		if got := value.String(); got != want {
			t.Errorf("%T(%d).String() = %q, want %q", value, value, got, want)
		}
	}
}

func BenchmarkDelay(b *testing.B) {
	for jitter := backoff.AdditiveJitter; jitter <= backoff.DecorrelatedJitter; jitter++ {
		b.Run(jitter.String(), func(b *testing.B) {
			b.ReportAllocs()
			p := backoff.Policy{Jitter: jitter}
			for n := 0; b.Loop(); n++ {
				p.Delay(n%10, 0.5)
			}
		})
	}
}
