package result

import (
	"context"
	"errors"
	"strconv"
	"time"

	"gcsup/internal/checksum"
	"gcsup/internal/cli/command"
	"gcsup/internal/cli/exit"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// Line is the last line of an upload.
type Line struct {
	V           int        `json:"v"`
	Type        string     `json:"type"`
	Status      Status     `json:"status"`
	Source      string     `json:"source"`
	Destination string     `json:"destination"`
	Generation  *string    `json:"generation"` // a string, because JSON numbers lose digits
	Size        *int64     `json:"size"`
	ObjectSize  *int64     `json:"object_size"`
	CRC32C      *string    `json:"crc32c"`
	BytesSent   int64      `json:"bytes_sent"`
	BytesResent int64      `json:"bytes_resent"`
	ResumedFrom int64      `json:"resumed_from"`
	Requests    int        `json:"requests"`
	Retries     int        `json:"retries"`
	WaitedMS    int64      `json:"waited_ms"`
	ThrottledMS int64      `json:"throttled_ms"` // for the request rate of the bucket
	ElapsedMS   int64      `json:"elapsed_ms"`
	Parallel    *partsLine `json:"parallel"`
	Leftover    *string    `json:"leftover"`
	Removed     bool       `json:"source_removed"`
	Kept        *string    `json:"source_kept"`
	Unverified  *string    `json:"unverified,omitempty"`
	File        *int       `json:"file"` // the same in all lines of a file
	ID          *string    `json:"id"`
	Entry       tree.Kind  `json:"entry,omitempty"` // of a skipped entry of a directory that is not a file
	Error       *ErrorLine `json:"error"`
}

// partsLine is the speed of the connections of a file in parts.
type partsLine struct {
	Parts          int    `json:"parts"`
	Connections    int    `json:"connections"`
	BytesPerS      *int64 `json:"bytes_per_s"`
	BytesPerSOfOne *int64 `json:"bytes_per_s_of_one"`
}

type ErrorLine struct {
	Kind      string       `json:"kind"`
	Message   string       `json:"message"`
	Operation *string      `json:"operation"` // the request that failed
	Status    *int         `json:"status"`    // HTTP status
	Holder    *holderLine  `json:"holder,omitempty"`
	Command   *commandLine `json:"command,omitempty"` // how the command ended whose output was uploaded
}

// commandLine is the end of a command. Both fields are null if it was not started.
type commandLine struct {
	ExitCode *int    `json:"exit_code"`
	Signal   *string `json:"signal"`
}

// holderLine is the process that uses an upload. An unknown field is null.
type holderLine struct {
	Name  string     `json:"name"`
	Host  *string    `json:"host"`
	PID   *int       `json:"pid"`
	Since *time.Time `json:"since"`
}

func newHolderLine(held *state.HeldError) *holderLine {
	return &holderLine{held.Holder(), Known(held.Host, held.Host != ""), Known(held.PID, held.PID != 0), Known(held.Since.UTC(), !held.Since.IsZero())}
}

// EventLine is one event of an upload. Events come before the result.
type EventLine struct {
	V           int     `json:"v"`
	Type        string  `json:"type"`
	Source      *string `json:"source"` // null if the event concerns a listing
	Destination string  `json:"destination"`
	File        *int    `json:"file"` // null if the event does not concern one file
	ID          *string `json:"id"`
	Size        *int64  `json:"size"`
	Sent        int64   `json:"sent"`
	Committed   int64   `json:"committed"`

	// For a compressed file.
	SourceSize      *int64 `json:"source_size,omitempty"`
	SourceSent      *int64 `json:"source_sent,omitempty"`
	SourceCommitted *int64 `json:"source_committed,omitempty"`

	// For a file in parts.
	Part        int `json:"part,omitempty"` // the number of the part; 0 if the event is about the whole file
	Parts       int `json:"parts,omitempty"`
	PartsDone   int `json:"parts_done,omitempty"`
	Connections int `json:"connections,omitempty"`

	Compared  int64  `json:"compared,omitempty"`
	ToCompare int64  `json:"to_compare,omitempty"`
	DelayMS   int64  `json:"delay_ms,omitempty"`
	Retry     int    `json:"retry,omitempty"`
	State     bool   `json:"state,omitempty"` // the request was one to the state bucket
	Cause     string `json:"cause,omitempty"`

	// For a wait for the lease of another process.
	Holder  *holderLine `json:"holder,omitempty"`
	LeaseMS int64       `json:"lease_ms,omitempty"` // how long a lease of that process lasts
}

// SummaryLine is the last line of a run.
type SummaryLine struct {
	V              int    `json:"v"`
	Type           string `json:"type"`
	Files          int    `json:"files"`
	Uploaded       int    `json:"uploaded"`
	Planned        int    `json:"planned"`
	Skipped        int    `json:"skipped"`
	Failed         int    `json:"failed"`
	Interrupted    int    `json:"interrupted"` // of those that failed
	NotTried       int    `json:"not_tried"`   // of those that failed
	FinishedBefore int    `json:"finished_before"`
	SourcesRemoved int    `json:"sources_removed"`
	Bytes          int64  `json:"bytes"`
	PlannedBytes   int64  `json:"planned_bytes"`
	BytesSent      int64  `json:"bytes_sent"`
	BytesResent    int64  `json:"bytes_resent"`
	Requests       int    `json:"requests"`
	Retries        int    `json:"retries"`
	WaitedMS       int64  `json:"waited_ms"`
	ThrottledMS    int64  `json:"throttled_ms"`
	ElapsedMS      int64  `json:"elapsed_ms"`
	BytesPerS      *int64 `json:"bytes_per_s"`

	Deletions *Deletions `json:"deletions"` // null without sync --delete

	ExitCode int `json:"exit_code"`
}

// NewLine returns the result of the upload of a file with that number; res may be nil.
func NewLine(number int, f File, status Status, res *upload.Result, err error) Line {
	l := Line{V: 1, Type: "result", File: &number, Status: status, Source: f.Source, Destination: f.Destination, Entry: f.Entry}
	if res != nil {
		l.Size, l.ID = Known(res.Size, res.Size >= 0), Known(res.ID, res.ID != "")
		l.BytesSent, l.BytesResent, l.ResumedFrom = res.BytesSent, res.BytesResent, res.ResumedFrom
		l.Requests, l.Retries = res.Requests, res.Retries
		l.WaitedMS, l.ThrottledMS, l.ElapsedMS = res.Waited.Milliseconds(), res.Throttled.Milliseconds(), res.Elapsed.Milliseconds()
		if p := res.Parts; p != nil {
			l.Parallel = &partsLine{p.Count, p.Connections, Known(p.Rate, p.Rate > 0), Known(p.RateOfOne, p.RateOfOne > 0)}
		}
		if res.Leftover != nil {
			l.Leftover = new(exit.Text(res.Leftover))
		}
		if res.Unverified != nil {
			l.Unverified = new(exit.Text(res.Unverified))
		}
		l.Removed = res.SourceRemoved
		if res.SourceKept != nil {
			l.Kept = new(exit.Text(res.SourceKept))
		}
		if o := res.Object; o != nil {
			l.Generation = new(Generation(o))
			l.ObjectSize = &o.Size
			if !o.Gzip && !res.Spec.Gzip || l.Size == nil {
				l.Size = &o.Size
			}
			l.CRC32C = Known(checksum.Encode(o.CRC32C), o.HasCRC32C)
		}
	}
	if status == Failed || f.Entry != "" || exit.NotResumable(err) {
		l.Error = NewErrorLine(err)
	}
	return l
}

func NewErrorLine(err error) *ErrorLine {
	l := &ErrorLine{Kind: exit.Classify(err).Kind, Message: exit.Text(err)}
	// The status of an interruption may be that of an earlier failure. An early error has
	// the status 412, but the service did not send it.
	if e, ok := errors.AsType[*session.Error](err); ok && !e.Early && !errors.Is(err, context.Canceled) {
		l.Operation, l.Status = Known(string(e.Op), e.Op != ""), Known(e.Status, e.Status != 0)
	}
	if held, ok := errors.AsType[*state.HeldError](err); ok {
		l.Holder = newHolderLine(held)
	}
	if failed, ok := errors.AsType[*command.Failure](err); ok {
		l.Command = &commandLine{Known(failed.ExitCode, failed.ExitCode >= 0), Known(failed.Signal, failed.Signal != "")}
	}
	return l
}

// NewEventLine returns the line of an event. number is that of the file, 0 if the event does not concern
// one file.
func NewEventLine(number int, source, destination string, e upload.Event) EventLine {
	l := EventLine{
		V: 1, Type: e.Kind.String(), File: Known(number, number != 0), Source: Known(source, source != ""), Destination: destination,
		ID: Known(e.ID, e.ID != ""), Size: Known(e.Size, e.Size >= 0),
		Sent: e.Sent, Committed: e.Committed,
		Compared: e.Compared, ToCompare: e.ToCompare,
		DelayMS: e.Delay.Milliseconds(), Retry: e.Retry, State: e.Store, Cause: exit.Without(e.Cause, e.Err),
	}
	if held, ok := errors.AsType[*state.HeldError](e.Err); ok {
		l.Holder, l.LeaseMS = newHolderLine(held), held.TTL.Milliseconds()
	}
	if s := e.Source; s != nil {
		l.SourceSize, l.SourceSent, l.SourceCommitted = &s.Size, &s.Sent, &s.Committed
	}
	if p := e.Parts; p != nil {
		l.Part, l.Parts, l.PartsDone, l.Connections = e.Part, p.Count, p.Done, p.Connections
	}
	return l
}

// Generation returns the generation of an object as text: JSON numbers lose digits.
func Generation(o *session.Object) string { return strconv.FormatInt(o.Generation, 10) }
