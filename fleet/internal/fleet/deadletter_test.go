package fleet

import (
	"testing"

	"gcsup/internal/require"
)

// TestLaterLetterStays checks that a dead letter stays if it is written while a submit or a retry
// deletes the one of an earlier failure.
func TestLaterLetterStays(t *testing.T) {
	t.Parallel()
	ctx, q := t.Context(), newQueue(t)
	task := sampleTask()
	again, other := task.one(task.Files[0]), task.one(task.Files[1])
	fail := func(one *Task, reason string) {
		t.Helper()
		if _, err := q.putLetter(ctx, one.ID(), DeadLetter{Task: one, Kind: "precondition", Reason: reason}); err != nil {
			t.Fatal(err)
		}
	}
	fail(again, "first")
	fail(other, "first")
	before, err := q.letters(ctx, task, task.Files, forever)
	if err != nil || len(before) != 2 {
		t.Fatalf("letters %v, %v, want 2", before, err)
	}
	fail(again, "second")
	require.NoError(t, q.dropLetters(ctx, before))
	left := map[string]string{}
	if err := q.Failed(ctx, func(id string, l DeadLetter) error {
		left[id] = l.Reason
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[again.ID()] != "second" {
		t.Errorf("dead letters %v, want the second one of %s", left, again.ID())
	}
}
