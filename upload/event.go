package upload

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"gcsup/session"
)

// EventKind is what an [Event] reports.
type EventKind int

// The kinds of events. Done, Interrupted and Failed are the terminal kinds.
const (
	Started   EventKind = iota // a session was opened, or a small object is on its way
	Resumed                    // the session of a saved upload continues at Committed
	Restarted                  // the session was lost, or its bytes were damaged: a new one starts at byte 0
	Discarded                  // a saved upload was not used; Cause is the reason
	Progress                   // bytes moved; at most a few times per second
	Verifying                  // the source is read and compared with what was sent before; at most a few times per second
	Settling                   // the source is not read until its changes are on its disk, so that its times show any later change
	Waiting                    // a request failed, see Store; the retry is in Delay
	Warning                    // a problem that does not stop the upload; Cause describes it

	// The terminal kinds. The last event of every upload has one of them.
	Done        // the object is there, or the upload was skipped: see Result
	Interrupted // the context of the call was done, or Pause or Cancel ended the upload; Err has the cause
	Failed      // Err is the reason

	// The following are not terminal.

	LeaseHeld // another process holds the lease of the saved upload, and may have died; the lease ends in Delay

	PartDone  // the service has all of a part, see Part
	Undivided // Parts.Auto sends the file over one connection; Cause is the reason
	Divided   // Parts.Auto discards the first bytes, which one connection sent, and sends the file in parts; Cause is the reason

	InputWaits     // the input of a stream is not read, because its spool is full; Cause is the reason, Err that of the disk
	InputContinues // the input is read again

	kindCount // not a kind
)

var eventNames = [kindCount]string{
	Started: "started", Resumed: "resumed", Restarted: "restarted", Discarded: "discarded", Progress: "progress",
	Verifying: "verifying", Waiting: "waiting", Warning: "warning", Settling: "settling",
	Done: "done", Interrupted: "interrupted", Failed: "failed", LeaseHeld: "lease_held",
	InputWaits: "input_waits", InputContinues: "input_continues",
	PartDone: "part_done", Undivided: "undivided", Divided: "divided",
}

// String returns the name of k in snake case, such as "waiting". The JSON lines of the command and
// the span events of package upload/otel have the same names.
func (k EventKind) String() string { return nameOf(int(k), eventNames[:], "EventKind") }

// Terminal reports whether an event of this kind is the last one of its upload.
func (k EventKind) Terminal() bool { return k == Done || k == Interrupted || k == Failed }

// Event reports what an upload does. It holds no secrets.
//
// An upload is a [Writer], a call of [Uploader.Cancel], a job of [Uploader.Files] that
// yields a result, or a call of another method of [Uploader] that returns a [Result].
// Its last event is the only one of a terminal kind. An upload that fails before its
// first request, and a file of a batch that is skipped or not tried, also have a
// terminal event. The events of a listing, and of methods that upload nothing, such as
// [Uploader.Query] and [Uploader.Prune], have no terminal kind.
//
// SentDelta and CommittedDelta are changes since the previous event of the upload that the
// Observer got. They are exact even if events between the two were merged or dropped. A
// counter over all uploads therefore adds one number for each event, and needs no memory
// of the uploads.
//
//   - SentDelta is never negative, because bytes that are sent again count again. The sum
//     over all events of an upload is Result.BytesSent.
//   - CommittedDelta is negative if committed bytes are lost: in Restarted, in a Discarded or
//     Divided after the upload has started, or if the service lost a part. It is 0 up to
//     Started or Resumed, because bytes that an earlier call sent do not count. The sum is the
//     change of Committed from then on.
type Event struct {
	Kind      EventKind
	Time      time.Time // when it happened
	Upload    int64     // number of the upload, unique in this process; 0: a listing of the prefix Spec.Object
	ID        string
	Path      string // of the source; "" for a stream
	Spec      Spec
	Source    *SourceOffsets // of a file that is compressed; nil for any other source
	Parts     *PartsProgress // of a file that is sent in parts; nil for any other source
	Part      int            // the part that the event is about, from 1; 0 if it is about the whole file
	Size      int64          // of the object, -1 while it is not known
	Sent      int64          // offset up to which bytes were handed to the network
	Arrived   int64          // offset up to which bytes arrived, in a session or of a small file; at least Committed
	Committed int64          // the committed offset

	SentDelta      int64 // bytes of the object that were handed to the network since the previous event
	CommittedDelta int64 // change of Committed since the previous event

	Compared  int64         // Verifying: offset up to which the source was read
	ToCompare int64         // Verifying: offset up to which it will be read
	Delay     time.Duration // Waiting, LeaseHeld: how long
	Retry     int           // Waiting: number of consecutive failures, from 1
	Store     bool          // Waiting: the request was one of Options.Store, to save the upload or to keep its lease
	Blocked   bool          // Waiting: the circuit breaker blocks the upload, because another one probes the service
	Result    *Result       // the terminal kinds: a copy of what the call returns; Object is nil for a Cancel

	// Cause is the reason, for people, of a Waiting, Restarted, Discarded, Undivided, Divided,
	// Warning or InputWaits. Of a LeaseHeld, it is the process that holds the lease.
	Cause string

	// Err is what the call returns (Interrupted, Failed), why the request failed (Waiting), a
	// *state.HeldError (LeaseHeld), the error of the disk (InputWaits), or the error in Cause (Warning). It
	// can be nil.
	Err error

	ctx context.Context
	sum counts
}

// counts are sums over the events of one upload. An Event has their values when it was
// made, and their changes when it is delivered.
type counts struct {
	sent      int64 // bytes handed to the network
	committed int64 // bytes that became durable since the session was opened or resumed
}

// Context returns the context of the call, for the values in it, such as a trace.
// It may be done.
func (e Event) Context() context.Context { return cmp.Or(e.ctx, context.Background()) }

// terminal returns the last event of an upload that ended with err.
func terminal(ctx context.Context, res Result, err error) Event {
	e := Event{Kind: Done, Err: err, Result: &res}
	_, interrupted := err.(*InterruptedError)
	switch {
	case err == nil:
	case interrupted, ctx.Err() != nil && errors.Is(err, ctx.Err()):
		e.Kind = Interrupted
	default:
		e.Kind = Failed
	}
	return e
}

// SourceOffsets are the numbers of an [Event] in bytes of the source, for a file
// that is compressed while it is sent, see [Spec].Gzip. Sent and Committed are
// estimates.
type SourceOffsets struct {
	Size      int64 // of the file
	Sent      int64 // offset up to which the compressed bytes were handed to the network
	Arrived   int64 // offset up to which they have arrived, see Event.Arrived
	Committed int64 // offset up to which the compressed bytes are committed
}

// PartsProgress is the progress of a file that is sent in parts, in an [Event].
type PartsProgress struct {
	Count       int // number of parts
	Done        int // parts that the service has
	Connections int // connections that are sending parts
}

// Exchange describes one request, its reply and what follows, see [Options].Exchange. It
// holds no secrets.
type Exchange struct {
	Upload int64 // as in [Event]
	ID     string
	Spec   Spec

	Op        session.Op
	Part      int           // the number of the part, from 1; 0 if the request is not about one part of a file
	Attempt   int           // number of requests since the last newly committed byte, including this one
	Time      time.Time     // when it began
	Duration  time.Duration // until the reply was read
	Offset    int64         // offset of the object data in the request; without object data, the committed offset before the request
	Sent      int64         // bytes of object data that were handed to the network
	Status    int           // HTTP status; 0 if no reply arrived
	Committed int64         // the committed offset in the reply; -1 if there is none
	Err       error         // why no reply arrived, or what is wrong with it

	// Next is the decision that follows. It is nil if the upload ended, or if nothing
	// depends on the reply.
	Next *session.Action

	ctx context.Context
}

// Context returns the context of the request. It has the values of the context of the
// call, such as a trace. It may be done.
func (x Exchange) Context() context.Context { return cmp.Or(x.ctx, context.Background()) }

// log writes the line of the exchange.
func (x *Exchange) log(logger *slog.Logger, attrs []slog.Attr) {
	if x.Part > 0 {
		attrs = append(attrs, slog.Int("part", x.Part))
	}
	attrs = append(attrs, slog.Int64("from", x.Offset), slog.Int64("sent", x.Sent), slog.Int("status", x.Status))
	if x.Committed >= 0 {
		attrs = append(attrs, slog.Int64("committed", x.Committed))
	}
	if x.Err != nil {
		attrs = append(attrs, slog.Any("err", x.Err))
	}
	attrs = append(attrs, slog.Duration("took", x.Duration))
	if x.Next != nil {
		attrs = append(attrs, slog.String("next", x.Next.String()))
	}
	logger.LogAttrs(x.ctx, slog.LevelDebug, string(x.Op), attrs...)
}
