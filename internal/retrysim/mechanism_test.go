package retrysim

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

func TestQueueOrder(t *testing.T) {
	seed := testsize.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	waits := []int64{1, 1 << 10, 1 << slotWidth, 1 << (slotWidth + 3), int64(time.Second), int64(time.Minute)}
	for range 20 {
		var q queue
		var sorted []int64
		push := func(at int64) {
			q.push(event{at: at})
			i, _ := slices.BinarySearch(sorted, at)
			sorted = slices.Insert(sorted, i, at)
		}
		for range 200 {
			push(r.Int64N(int64(time.Second)))
		}
		for i := 0; len(sorted) > 0; i++ {
			got, ok := q.pop()
			if !ok || got.at != sorted[0] {
				t.Fatalf("pop %d = %v, %v, want %v", i, got.at, ok, sorted[0])
			}
			sorted = sorted[1:]
			for n := r.IntN(3); n > 0 && i < 5000; n-- {
				push(got.at + r.Int64N(waits[r.IntN(len(waits))]))
			}
		}
		if e, ok := q.pop(); ok {
			t.Fatalf("pop of an empty queue = %v", e)
		}
	}
}

// TestQueueSameTime checks that events of the same time are popped in the order
// of their push, even if they are pushed while that time is processed.
func TestQueueSameTime(t *testing.T) {
	for _, at := range []int64{5, 5 << slotWidth} {
		var q queue
		var last int
		push := func(i int) { q.push(event{at: at, do: func() { last = i }}) }
		for i := range 100 {
			push(i)
		}
		for i := range 200 {
			e, ok := q.pop()
			if !ok {
				t.Fatalf("pop %d found no event", i)
			}
			if e.do(); last != i {
				t.Fatalf("pop %d = event %d", i, last)
			}
			if i < 100 {
				push(i + 100)
			}
		}
	}
}

func TestServer(t *testing.T) {
	const ms = int64(time.Millisecond)
	const s = int64(time.Second)
	type step struct{ at, count, want int64 }
	tests := []struct {
		name     string
		scenario Scenario
		steps    []step
	}{
		{"a tenth of a second is queued", Scenario{Capacity: 100}, []step{{0, 50, 10}, {0, 1, 0}, {9 * ms, 1, 0}, {10 * ms, 2, 1}, {10 * s, 50, 10}}},
		{"small capacity queues one", Scenario{Capacity: 3}, []step{{0, 5, 1}, {333_333_333, 1, 0}, {333_333_334, 1, 1}}},
		{"exact over thirds", Scenario{Capacity: 3}, []step{{0, 1, 1}, {s, 1, 1}, {s + 333_333_334, 1, 1}, {s + 666_666_667, 1, 0}, {s + 666_666_668, 1, 1}, {2*s + 2, 1, 1}}},
		{"single", Scenario{Capacity: 10, single: true}, []step{{0, 100, 1}, {99 * ms, 100, 0}, {100 * ms, 100, 1}, {s, 100, 1}}},
		{"outage", Scenario{Capacity: 100, Outage: time.Second}, []step{{0, 5, 0}, {s - 1, 5, 0}, {s, 50, 10}, {s, 1, 0}}},
		{"outage later", Scenario{Capacity: 100, Outage: time.Second, start: time.Second}, []step{{0, 50, 10}, {s - 1, 1, 1}, {s, 1, 0}, {2 * s, 50, 10}}},
		// Capacity grows to 100/s in 10 s. After t seconds the credit is 5 t^2
		// requests.
		{"ramp", Scenario{Capacity: 100, Outage: time.Second, ramp: 10 * time.Second},
			[]step{{s, 1, 0}, {s + 447*ms, 1, 0}, {s + 448*ms, 1, 1}, {2 * s, 99, 4}, {3 * s, 99, 10}, {3*s + 100*ms, 99, 2}, {11 * s, 99, 10}, {11*s + 50*ms, 99, 5}}},
		{"a refusal costs half", Scenario{Capacity: 100, refusal: 500}, []step{{0, 12, 10}, {100 * ms, 0, 0}, {100 * ms, 12, 10}, {150 * ms, 5, 5}, {200 * ms, 1, 1}, {200 * ms, 0, 0}}},
		{"refusals use all capacity", Scenario{Capacity: 100, refusal: 500}, []step{{0, 10, 10}, {15 * ms, 2, 1}, {20 * ms, 1, 0}, {25 * ms, 1, 0}, {35 * ms, 1, 1}}},
		{"upper limits", Scenario{Capacity: MaxCapacity, Outage: MaxOutage, ramp: 10 * time.Minute},
			[]step{{int64(MaxOutage) - 1, MaxClients, 0}, {int64(MaxOutage) + int64(5*time.Minute), MaxClients, MaxClients}, {int64(MaxOutage) + int64(time.Hour), MaxClients, MaxClients}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := newServer(test.scenario)
			for i, step := range test.steps {
				if got := server.admit(step.at, step.count); got != step.want {
					t.Errorf("step %d: admit(%v, %d) = %d, want %d", i, time.Duration(step.at), step.count, got, step.want)
				}
			}
		})
	}
}

// TestCutOff checks that the result of a run with too many requests has CutOff.
func TestCutOff(t *testing.T) {
	s, err := Lookup("herd")
	require.NoError(t, err)
	for _, limit := range []int{10, maxEvents} {
		r, err := newRun(s, "full", nothing, 1)
		require.NoError(t, err)
		r.limit = limit
		result, err := r.play(t.Context())
		require.NoError(t, err)
		var table, lines strings.Builder
		require.NoError(t, WriteTable(&table, s, []Result{result}))
		require.NoError(t, WriteJSON(&lines, []Result{result}))
		cut := limit == 10
		if result.CutOff != cut || strings.Contains(table.String(), "cut off") != cut || strings.Contains(lines.String(), `"cut_off":true`) != cut {
			t.Errorf("limit %d: CutOff = %v\n%s%s", limit, result.CutOff, table.String(), lines.String())
		}
	}
}
