package result_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/result"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// resultFields are the fields of a result line, which are a contract.
var resultFields = []string{
	"v", "type", "file", "status", "source", "destination", "generation", "size", "object_size", "crc32c", "bytes_sent", "bytes_resent", "resumed_from",
	"requests", "retries", "waited_ms", "throttled_ms", "elapsed_ms", "id", "parallel", "leftover", "source_removed", "source_kept", "error",
}

func line(t *testing.T, v any) (text string, fields map[string]any) {
	t.Helper()
	var b strings.Builder
	require.NoError(t, result.Print(&b, v))
	require.NoError(t, json.Unmarshal([]byte(b.String()), &fields))
	if strings.Count(b.String(), "\n") != 1 || !strings.HasSuffix(b.String(), "\n") {
		t.Errorf("got %q, want one line", b.String())
	}
	return b.String(), fields
}

func TestResultLine(t *testing.T) {
	res := &upload.Result{
		ID: "abc", Size: 5, BytesSent: 7, BytesResent: 2, ResumedFrom: 1, Resumed: true, Requests: 4, Retries: 1,
		Waited: 1500 * time.Millisecond, Throttled: 250 * time.Millisecond, Elapsed: 2 * time.Second,
		Object: &session.Object{Generation: 1 << 60, Size: 5, CRC32C: 0x01020304, HasCRC32C: true},
	}
	text, _ := line(t, result.NewLine(7, result.File{Source: "a&b\n", Destination: "gs://bkt/a"}, result.OK, res, nil))
	want := `{"v":1,"type":"result","status":"ok","source":"a&b\n","destination":"gs://bkt/a","generation":"1152921504606846976","size":5,"object_size":5,` +
		`"crc32c":"AQIDBA==","bytes_sent":7,"bytes_resent":2,"resumed_from":1,"requests":4,"retries":1,"waited_ms":1500,"throttled_ms":250,"elapsed_ms":2000,"parallel":null,"leftover":null,"source_removed":false,"source_kept":null,"file":7,"id":"abc","error":null}` + "\n"
	if text != want {
		t.Errorf("got  %swant %s", text, want)
	}
}

func TestResultLineOfFailure(t *testing.T) {
	for _, c := range []struct {
		res     *upload.Result
		err     error
		kind    string
		message string // "" for the text of err
		op      any
		status  any
	}{
		{nil, exit.Usagef("no"), "usage", "", nil, nil},
		{&upload.Result{Size: -1}, errors.New("disk"), "local_io", "", nil, nil},
		{&upload.Result{Size: 5, ID: "abc"}, &session.Error{Op: session.OpStart, Status: 404, Kind: session.ErrNotFound}, "not_found", "destination not found: 404 Not Found", "start", 404.0},
		{&upload.Result{Size: 5}, fmt.Errorf("%w (before that: %w)", context.Canceled, &session.Error{Op: session.OpPut, Status: 503}), "interrupted", "context canceled (before that: 503 Service Unavailable)", nil, nil},
		{&upload.Result{Size: 5}, &session.Error{Op: session.OpPut, Kind: session.ErrRetriesExhausted, Err: errors.New("reset")}, "retries_exhausted", "retries exhausted: reset", "put", nil},
	} {
		_, fields := line(t, result.NewLine(7, result.File{Source: "a", Destination: "gs://bkt/a"}, result.Failed, c.res, c.err))
		var names []string
		for name := range fields {
			names = append(names, name)
		}
		slices.Sort(names)
		want := slices.Sorted(slices.Values(resultFields))
		if !reflect.DeepEqual(names, want) {
			t.Errorf("%v: fields %v, want %v", c.err, names, want)
		}
		wantError := map[string]any{"kind": c.kind, "message": cmp.Or(c.message, c.err.Error()), "operation": c.op, "status": c.status}
		if !reflect.DeepEqual(fields["error"], wantError) {
			t.Errorf("%v: error %v, want %v", c.err, fields["error"], wantError)
		}
		if fields["generation"] != nil || fields["crc32c"] != nil {
			t.Errorf("%v: result has fields of an object: %v", c.err, fields)
		}
		if c.res == nil || c.res.Size < 0 {
			if fields["size"] != nil {
				t.Errorf("%v: size %v, want null", c.err, fields["size"])
			}
		}
	}
}

// The error of an upload that another process uses has the holder, as far as it is Known.
func TestResultLineInUse(t *testing.T) {
	since := time.Date(2026, 11, 22, 11, 0, 0, 0, time.FixedZone("", 3600))
	for _, c := range []struct {
		held state.HeldError
		want map[string]any
	}{
		{state.HeldError{}, map[string]any{"name": "another process", "host": nil, "pid": nil, "since": nil}},
		{state.HeldError{Host: "alpha", PID: 12, Since: since}, map[string]any{"name": "process 12 on alpha", "host": "alpha", "pid": 12.0, "since": "2026-11-22T10:00:00Z"}},
	} {
		err := fmt.Errorf("while testing: %w", &c.held)
		_, fields := line(t, result.NewLine(7, result.File{Source: "a", Destination: "gs://bkt/a"}, result.Failed, nil, err))
		want := map[string]any{"kind": "in_use", "message": err.Error(), "operation": nil, "status": nil, "holder": c.want}
		if !reflect.DeepEqual(fields["error"], want) {
			t.Errorf("error %v, want %v", fields["error"], want)
		}
	}
}

func TestEventLine(t *testing.T) {
	e := upload.Event{Kind: upload.Waiting, ID: "abc", Size: 9, Sent: 5, Committed: 3, Delay: 1500 * time.Millisecond, Retry: 2, Cause: "503"}
	text, _ := line(t, result.NewEventLine(3, "a", "gs://bkt/a", e))
	want := `{"v":1,"type":"waiting","source":"a","destination":"gs://bkt/a","file":3,"id":"abc","size":9,"sent":5,"committed":3,"delay_ms":1500,"retry":2,"cause":"503"}` + "\n"
	if text != want {
		t.Errorf("got  %swant %s", text, want)
	}
	text, _ = line(t, result.NewEventLine(3, "a", "gs://bkt/a", upload.Event{Kind: upload.Verifying, ID: "abc", Size: 9, Compared: 2, ToCompare: 5}))
	want = `{"v":1,"type":"verifying","source":"a","destination":"gs://bkt/a","file":3,"id":"abc","size":9,"sent":0,"committed":0,"compared":2,"to_compare":5}` + "\n"
	if text != want {
		t.Errorf("got  %swant %s", text, want)
	}
	text, _ = line(t, result.NewEventLine(3, "-", "gs://bkt/a", upload.Event{Kind: upload.Progress, Size: -1}))
	want = `{"v":1,"type":"progress","source":"-","destination":"gs://bkt/a","file":3,"id":null,"size":null,"sent":0,"committed":0}` + "\n"
	if text != want {
		t.Errorf("got  %swant %s", text, want)
	}
}
