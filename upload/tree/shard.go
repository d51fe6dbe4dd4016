package tree

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Shard is one of Count parts of the object names, so that many machines can
// share the work. The zero value is all names.
type Shard struct{ Index, Count int }

// Has reports whether an object belongs to the shard. An object belongs to
// exactly one shard of a Count: the first 8 bytes of the SHA-256 of its name, as
// a big-endian number, modulo Count. This rule does not change. In Python it is
//
//	int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) % count
func (s Shard) Has(object string) bool {
	if s.Count <= 1 {
		return true
	}
	var buf [128]byte // most names need no allocation
	sum := sha256.Sum256(append(buf[:0], object...))
	return binary.BigEndian.Uint64(sum[:8])%uint64(s.Count) == uint64(s.Index)
}

// String returns the shard in the form i/N of ParseShard.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Count) }

// The schedulers that number their tasks in the environment.
const (
	kubernetes = "Kubernetes"
	cloudRun   = "Cloud Run"
	batch      = "Batch"
	slurm      = "Slurm"
)

var taskVariables = []struct{ scheduler, index string }{
	{kubernetes, "JOB_COMPLETION_INDEX"},
	{cloudRun, "CLOUD_RUN_TASK_INDEX"},
	{batch, "BATCH_TASK_INDEX"},
	{slurm, "SLURM_ARRAY_TASK_ID"},
}

// ParseShard reads a Shard. getenv is [os.Getenv] or a replacement.
//
//	i/N     shard i of N, from 0
//	auto/N  a Kubernetes Indexed Job: i is JOB_COMPLETION_INDEX. No variable
//	        has the number of completions, which must be N.
//	auto    a task of Cloud Run Jobs (CLOUD_RUN_TASK_INDEX, CLOUD_RUN_TASK_COUNT),
//	        of Batch (BATCH_TASK_INDEX, BATCH_TASK_COUNT) or of a Slurm array
//	        (SLURM_ARRAY_TASK_ID, _MIN, _MAX, _STEP and _COUNT)
//
// Errors wrap [ErrUsage]. It is an error if the variables of two schedulers are set,
// or if a Slurm array is not MIN, MIN+STEP, ... MAX. A part of an array that is
// submitted again, such as --array=3, looks like a whole array. Use i/N for it.
func ParseShard(s string, getenv func(string) string) (Shard, error) {
	shard, err := parseShard(s, getenv)
	if err == nil {
		err = shard.check()
	}
	if err != nil {
		return Shard{}, fmt.Errorf("%w: shard %q: %w", ErrUsage, s, err)
	}
	return shard, nil
}

func (s Shard) check() error {
	switch {
	case s.Count < 1:
		return fmt.Errorf("the count is %d: want at least 1", s.Count)
	case s.Index < 0 || s.Index >= s.Count:
		return fmt.Errorf("the index is %d: want 0 to %d, because the count is %d", s.Index, s.Count-1, s.Count)
	}
	return nil
}

func parseShard(s string, getenv func(string) string) (Shard, error) {
	index, count, found := strings.Cut(s, "/")
	if index != "auto" {
		if !found {
			return Shard{}, fmt.Errorf("want i/N, auto/N or auto")
		}
		i, err := number("the index", index)
		if err != nil {
			return Shard{}, err
		}
		n, err := number("the count", count)
		return Shard{i, n}, err
	}

	scheduler, variable := "", ""
	for _, v := range taskVariables {
		if getenv(v.index) == "" {
			continue
		}
		if scheduler != "" {
			return Shard{}, fmt.Errorf("both %s and %s are set: write i/N, or unset the variables of %s or %s", variable, v.index, scheduler, v.scheduler)
		}
		scheduler, variable = v.scheduler, v.index
	}
	env := func(name string) (int, error) {
		v := getenv(name)
		if v == "" {
			return 0, fmt.Errorf("%s is set, but %s is not: write i/N", variable, name)
		}
		return number(name, v)
	}
	switch {
	case found && scheduler == kubernetes:
		n, err := number("the count", count)
		if err != nil {
			return Shard{}, err
		}
		i, err := env(variable)
		return Shard{i, n}, err
	case found && scheduler == "":
		return Shard{}, fmt.Errorf("JOB_COMPLETION_INDEX is not set: this is not a task of a Kubernetes Indexed Job; write i/N")
	case found:
		return Shard{}, fmt.Errorf("auto/N is for Kubernetes, and this is a task of %s, which has the count in a variable: write auto", scheduler)
	}
	switch scheduler {
	case kubernetes:
		return Shard{}, fmt.Errorf("JOB_COMPLETION_INDEX is set, but no variable has the number of completions: write auto/N, where N is spec.completions of the Job")
	case cloudRun:
		return taskShard(env, "CLOUD_RUN_TASK_INDEX", "CLOUD_RUN_TASK_COUNT")
	case batch:
		return taskShard(env, "BATCH_TASK_INDEX", "BATCH_TASK_COUNT")
	case slurm:
		return slurmShard(env)
	}
	return Shard{}, fmt.Errorf("no variable of Cloud Run, Batch or Slurm is set: write i/N")
}

func taskShard(env func(string) (int, error), index, count string) (Shard, error) {
	i, err := env(index)
	if err != nil {
		return Shard{}, err
	}
	n, err := env(count)
	return Shard{i, n}, err
}

func slurmShard(env func(string) (int, error)) (Shard, error) {
	const array = "SLURM_ARRAY_TASK_"
	var v [5]int
	for i, name := range []string{"ID", "MIN", "MAX", "STEP", "COUNT"} {
		var err error
		if v[i], err = env(array + name); err != nil {
			return Shard{}, err
		}
	}
	id, least, most, step, count := v[0], v[1], v[2], v[3], v[4]
	if step < 1 || most < least || (most-least)/step+1 != count || id < least || id > most || (id-least)%step != 0 {
		return Shard{}, fmt.Errorf("task %d of the array from %d to %d in steps of %d is not one of its %d tasks: submit an array such as --array=0-9, or write i/N", id, least, most, step, count)
	}
	return Shard{(id - least) / step, count}, nil
}

// number parses a decimal number without a sign.
func number(what, s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%s is %q: want a number", what, s)
	}
	return int(n), nil
}
