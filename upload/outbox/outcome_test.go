package outbox

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"syscall"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/multipart"
	"gcsup/session"
)

// TestJudge checks which errors are about one file, about all, and about a moment.
func TestJudge(t *testing.T) {
	refusal := func(op session.Op, kind error, status int, reason string) error {
		return fmt.Errorf("upload: %w", &session.Error{Op: op, Kind: kind, Status: status, Reason: reason, FromService: true})
	}
	tooLong := &fs.PathError{Op: "rename", Path: "done/n", Err: syscall.ENAMETOOLONG}
	tooManyOpen := syscall.EMFILE
	if runtime.GOOS == "windows" {
		tooManyOpen = 4 // ERROR_TOO_MANY_OPEN_FILES
	}
	for _, tt := range []struct {
		name string
		end  ending
		want attemptEnd
	}{
		{"removed", ending{}, disposed},
		{"kept", ending{keep: true}, recorded},
		{"the outbox stops", ending{stopping: true, err: syscall.ENOSPC}, interrupted},
		{"changed", ending{err: fmt.Errorf("x: %w", chunk.ErrChanged)}, altered},
		{"gone", ending{gone: true, err: fs.ErrNotExist}, vanished},
		{"not readable", ending{err: chunk.ErrOpen}, unusable},
		{"no descriptor", ending{err: fmt.Errorf("%w: %w", chunk.ErrOpen, &fs.PathError{Op: "open", Path: "a", Err: tooManyOpen})}, unavailable},
		{"a name with a line break", ending{err: session.Spec{Bucket: "bkt", Object: "a\nb"}.Validate()}, hopeless},
		{"retention", ending{err: refusal(session.OpInsert, session.ErrPermission, 403, "retentionPolicyNotMet")}, hopeless},
		{"retention, XML", ending{err: refusal(multipart.OpComplete, session.ErrPermission, 403, "RetentionPolicyNotMet")}, hopeless},
		{"no room for the name of a moved file", ending{left: tooLong}, hopeless},
		{"no room for the name of a saved upload", ending{err: tooLong}, unavailable},
		{"400", ending{err: refusal(session.OpInsert, session.ErrInvalid, 400, "invalid")}, invalid},
		{"412", ending{err: refusal(session.OpInsert, session.ErrPrecondition, 412, "conditionNotMet")}, refused},
		{"no permission to create", ending{err: refusal(session.OpInsert, session.ErrPermission, 403, "forbidden")}, unavailable},
		{"no permission to compare", ending{err: refusal(session.OpStat, session.ErrPermission, 403, "forbidden")}, unreadable},
		{"no permission to verify", ending{left: refusal(session.OpStat, session.ErrPermission, 403, "forbidden")}, unreadable},
		{"403 of a proxy", ending{left: &session.Error{Op: session.OpStat, Kind: session.ErrPermission, Status: 403}}, unavailable},
		{"no space to save", ending{err: &fs.PathError{Op: "write", Path: "state", Err: syscall.ENOSPC}}, full},
		{"no space to move", ending{left: &fs.PathError{Op: "mkdir", Path: "done", Err: syscall.ENOSPC}}, unavailable},
		{"outage", ending{err: errors.New("no route to host")}, unavailable},
	} {
		if got := judge(tt.end); got != tt.want {
			t.Errorf("%s: outcome %d, want %d", tt.name, got, tt.want)
		}
	}
}
