package fleet

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
)

// TestKeptMessages reads a task and records that an earlier version wrote. The files in testdata are never
// rewritten: a new version of a format gets files of its own. A task of the next version is refused.
func TestKeptMessages(t *testing.T) {
	read := func(name string) []byte {
		t.Helper()
		text, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		return text
	}
	text := read("task-v3.json")
	if got, err := decodeTask(text); err != nil || !reflect.DeepEqual(got, sampleTask()) {
		t.Errorf("the task is %+v, %v", got, err)
	}
	if written, err := sampleTask().encode(); err != nil || strings.TrimSpace(string(written)) != strings.TrimSpace(string(text)) {
		t.Errorf("this version writes %s (%v), which a worker of an earlier one may refuse", written, err)
	}
	if _, err := decodeTask([]byte(strings.Replace(string(text), `"v":3`, `"v":4`, 1))); err == nil || !strings.Contains(err.Error(), "version 4, want 3") {
		t.Errorf("a task of version 4: %v", err)
	}
	at := time.Date(2026, 11, 29, 18, 0, 0, 0, time.UTC)
	for name, want := range map[string]any{
		"record-v1.json": record{
			V: 1, State: stateDone, Files: 2, Bytes: 5, Skipped: 1, Changed: 1, Fingerprint: "f", Settings: "s", Split: true,
			Published: at, Submission: "0123", Attempts: attempts{Failures: 1, Total: 2, Committed: 3, Kind: "k", Reason: "r", Progress: true},
		},
		"submission-v1.json": submissionRecord{
			V: 1, Destination: "gs://bucket/", Started: at, Queue: at, Complete: true, Files: 2, Bytes: 5, Settings: "s", Replaces: true, Done: true,
		},
	} {
		got := reflect.New(reflect.TypeOf(want))
		if err := json.Unmarshal(read(name), got.Interface()); err != nil || !reflect.DeepEqual(got.Elem().Interface(), want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got.Elem(), err, want)
		}
	}
}
