package tree_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gcsup/internal/testsize"
	"gcsup/upload/tree"
)

// The hash of a name never changes: the machines of one run may have different
// versions.
func TestShardPinned(t *testing.T) {
	for _, test := range []struct {
		object string
		count  int
		want   int
	}{
		// int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) % count, in Python
		{"a", 2, 0},
		{"a", 3, 1},
		{"photos/2026/x.jpg", 10, 0},
		{"photos/2026/x.jpg", 1000, 690},
		{"日本.txt", 7, 3},
		{strings.Repeat("x", 200), 16, 0},
	} {
		for i := range test.count {
			if has := (tree.Shard{Index: i, Count: test.count}).Has(test.object); has != (i == test.want) {
				t.Errorf("%q: shard %d/%d: %v, want shard %d", test.object, i, test.count, has, test.want)
			}
		}
	}
}

// Each name is in exactly one shard, and the shards are about equal, even if the
// names differ in one digit only.
func TestShardDistribution(t *testing.T) {
	if testing.Short() {
		t.Skip("makes many files")
	}
	names := testsize.Full(20_000, 5000)
	for _, count := range []int{1, 2, 3, 10, 64} {
		for _, step := range []int{1, 2, 64} {
			sizes := make([]int, count)
			for n := range names {
				name, found := fmt.Sprintf("logs/2026/%07d.gz", n*step), 0
				for i := range count {
					if (tree.Shard{Index: i, Count: count}).Has(name) {
						found++
						sizes[i]++
					}
				}
				if found != 1 {
					t.Fatalf("%s is in %d of %d shards", name, found, count)
				}
			}
			for i, size := range sizes {
				// 5 standard deviations are less than 5 sqrt(names/count).
				if mean := names / count; (size-mean)*(size-mean) > 25*mean {
					t.Errorf("shard %d/%d has %d names of %d (step %d)", i, count, size, names, step)
				}
			}
		}
	}
	if !(tree.Shard{}).Has("x") {
		t.Error("the zero Shard does not have x")
	}
}

func TestParseShard(t *testing.T) {
	const (
		k8s = "JOB_COMPLETION_INDEX=3 "
		run = "CLOUD_RUN_TASK_INDEX=3 CLOUD_RUN_TASK_COUNT=7 "
		bat = "BATCH_TASK_INDEX=0 BATCH_TASK_COUNT=7 "
	)
	slurm := func(id, least, most, step, count int) string {
		return fmt.Sprintf("SLURM_ARRAY_TASK_ID=%d SLURM_ARRAY_TASK_MIN=%d SLURM_ARRAY_TASK_MAX=%d SLURM_ARRAY_TASK_STEP=%d SLURM_ARRAY_TASK_COUNT=%d", id, least, most, step, count)
	}
	for _, test := range []struct{ in, env, want string }{
		{"0/1", "", "0/1"},
		{"4/5", "", "4/5"},
		{"4/5", k8s + run, "4/5"},
		{"auto/7", k8s, "3/7"},
		{"auto/4", k8s, "3/4"},
		{"auto", run, "3/7"},
		{"auto", bat, "0/7"},
		{"auto", slurm(0, 0, 9, 1, 10), "0/10"},
		{"auto", slurm(9, 0, 9, 1, 10), "9/10"},
		{"auto", slurm(5, 1, 9, 2, 5), "2/5"},
		{"auto", slurm(6, 0, 10, 3, 4), "2/4"},
		{"auto", slurm(3, 3, 3, 1, 1), "0/1"},

		{"", "", "want i/N, auto/N or auto"},
		{"3", "", "want i/N"},
		{"x/3", "", `the index is "x"`},
		{"-1/3", "", `the index is "-1"`},
		{"+1/3", "", `the index is "+1"`},
		{"1/", "", `the count is ""`},
		{"1/x", "", `the count is "x"`},
		{"1/2/3", "", `the count is "2/3"`},
		{"3/3", "", "want 0 to 2"},
		{"0/0", "", "want at least 1"},
		{"auto/3", k8s, "the index is 3: want 0 to 2"},
		{"auto/x", k8s, `the count is "x"`},
		{"auto/", k8s, `the count is ""`},
		{"auto/7", "JOB_COMPLETION_INDEX=x", `JOB_COMPLETION_INDEX is "x"`},
		{"auto/7", "", "JOB_COMPLETION_INDEX is not set"},
		{"auto/7", run, "write auto"},
		{"auto", k8s, "write auto/N"},
		{"auto", "", "write i/N"},
		{"auto", run + bat, "both CLOUD_RUN_TASK_INDEX and BATCH_TASK_INDEX are set"},
		{"auto/7", k8s + bat, "both JOB_COMPLETION_INDEX and BATCH_TASK_INDEX are set"},
		{"auto", k8s + slurm(0, 0, 9, 1, 10), "both"},
		{"auto", "CLOUD_RUN_TASK_INDEX=3", "CLOUD_RUN_TASK_COUNT is not"},
		{"auto", "BATCH_TASK_INDEX=7 BATCH_TASK_COUNT=7", "want 0 to 6"},
		{"auto", "SLURM_ARRAY_TASK_ID=3", "SLURM_ARRAY_TASK_MIN is not"},
		{"auto", slurm(5, 1, 7, 1, 3), "write i/N"},   // --array=1,5,7
		{"auto", slurm(2, 0, 9, 1, 11), "write i/N"},  // count
		{"auto", slurm(10, 0, 9, 1, 10), "write i/N"}, // beyond the last
		{"auto", slurm(0, 1, 9, 1, 9), "write i/N"},   // before the first
		{"auto", slurm(2, 1, 9, 2, 5), "write i/N"},   // between two
		{"auto", slurm(1, 1, 9, 0, 5), "write i/N"},   // step
		{"auto", slurm(9, 9, 1, 1, 5), "write i/N"},   // order
		{"auto", slurm(11, 0, 10, 3, 4), "write i/N"}, // beyond the last
		{"AUTO", run, "want i/N, auto/N or auto"},
	} {
		env := map[string]string{}
		for _, kv := range strings.Fields(test.env) {
			k, v, _ := strings.Cut(kv, "=")
			env[k] = v
		}
		got, err := tree.ParseShard(test.in, func(k string) string { return env[k] })
		if err != nil {
			if !errors.Is(err, tree.ErrUsage) || !strings.Contains(err.Error(), test.want) || got != (tree.Shard{}) {
				t.Errorf("%q with %s: %v, %v, want %q", test.in, test.env, got, err, test.want)
			}
			continue
		}
		if got.String() != test.want {
			t.Errorf("%q with %s: %v, want %q", test.in, test.env, got, test.want)
		}
	}
}
