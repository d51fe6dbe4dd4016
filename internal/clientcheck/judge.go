package clientcheck

import (
	"fmt"
	"slices"
	"time"
)

// End is how a run of the client ended.
type End string

// The ends of a run.
const (
	Succeeded End = "succeeded"
	Failed    End = "failed"
	Killed    End = "killed"
	NoEnd     End = "did not end"
)

// Object is what the bucket has under the name of the object after the last run.
type Object string

// The states of an object.
const (
	Right  Object = "right"  // the bytes of the source
	Absent Object = "absent" // no object
	Kept   Object = "kept"   // the object of before, or of another client
	Wrong  Object = "wrong"  // other bytes
)

// Evidence is what a script has recorded.
type Evidence struct {
	Ends      []End  // of each run
	Message   string // of the last run, if it failed
	Object    Object
	Size      int64 // of the source
	Exchanges []Exchange
	Acted     bool // a fault of the script acted on a request
	Open      int  // sessions and multipart uploads that the client left open
	Others    int  // objects besides the one
	Elapsed   time.Duration
}

// Part is a part of a verdict.
type Part string

// The parts of a verdict.
const (
	PartObject   Part = "object"
	PartTruth    Part = "truth"
	PartProtocol Part = "protocol"
)

// Failure is a mistake of the client.
type Failure struct {
	Part Part   `json:"part"`
	Rule string `json:"rule"` // which mistake; one of a fixed set
	Text string `json:"text"`
	// Exchange is the number of the exchange that shows it, from 1, or 0 for none.
	Exchange int `json:"exchange,omitempty"`
}

// Verdict is the result of a script.
type Verdict struct {
	Script string `json:"script"`
	// Met reports whether the client met the situation. A client that sends an object in one
	// request, for example, gets no 308.
	Met      bool      `json:"met"`
	Disputed string    `json:"disputed,omitempty"` // see Script.Disputed
	End      End       `json:"end"`
	Message  string    `json:"message,omitempty"`
	Object   Object    `json:"object"`
	Failures []Failure `json:"failures,omitempty"`
	Cost     Cost      `json:"cost"`
}

// Passed reports whether the verdict counts as a success. A disputed script always does.
func (v Verdict) Passed() bool { return len(v.Failures) == 0 || v.Disputed != "" }

// Failed reports whether v has a failure in a part.
func (v Verdict) Failed(p Part) bool {
	return slices.ContainsFunc(v.Failures, func(f Failure) bool { return f.Part == p })
}

// Judge returns the verdict about a client in s.
func Judge(s Script, e Evidence) Verdict {
	end := e.Ends[len(e.Ends)-1]
	v := Verdict{
		Script: s.Name, Met: e.Acted, Disputed: s.Disputed, End: end, Message: e.Message,
		Object: e.Object, Cost: costOf(e),
	}
	if s.Faults == nil && !s.CutEnd {
		v.Met = true
	}
	if s.Kill {
		v.Met = len(e.Ends) == 2 && e.Ends[0] == Killed
	}
	v.Failures = slices.Concat(objectFailures(s, e, end), truthFailures(e, end), protocolFailures(s, e.Exchanges))
	return v
}

// objectFailures returns what is wrong with the object.
func objectFailures(s Script, e Evidence, end End) []Failure {
	fail := func(rule, format string, args ...any) []Failure {
		return []Failure{{Part: PartObject, Rule: rule, Text: fmt.Sprintf(format, args...)}}
	}
	other := s.Exists || s.Appears
	switch e.Object {
	case Wrong:
		return fail("wrong", "the object has other bytes than the source")
	case Absent:
		if end == NoEnd || s.MayFail && end == Failed {
			return nil // truthFailures has the first
		}
		return fail("absent", "there is no object")
	case Right:
		if refused := refusedBefore(e.Exchanges); other && refused > 0 {
			f := fail("replaced", "the client replaced an object after its precondition was refused")
			f[0].Exchange = refused
			return f
		}
	}
	return nil
}

// refusedBefore returns the number of the exchange whose precondition failed, or 0.
func refusedBefore(list []Exchange) int {
	refused := func(x Exchange) bool { return upload[x.Op] && x.Status == 412 && x.Fault == "" }
	return 1 + slices.IndexFunc(list, refused)
}

// truthFailures returns what is wrong with the end that the client reports.
func truthFailures(e Evidence, end End) []Failure {
	fail := func(rule, format string, args ...any) []Failure {
		return []Failure{{Part: PartTruth, Rule: rule, Text: fmt.Sprintf(format, args...)}}
	}
	switch {
	case end == NoEnd:
		return fail("no-end", "the client did not end")
	case end == Succeeded && (e.Object == Absent || e.Object == Wrong):
		return fail("false-success", "the client reported success, and the object is %s", e.Object)
	case end == Succeeded && e.Object == Kept && !declined(e.Exchanges):
		return fail("false-success", "the client reported success, and the object is that of another client")
	case end == Failed && e.Object == Right:
		return fail("false-failure", "the client reported a failure, and the object is there: %s", e.Message)
	}
	return nil
}

// declined reports whether the client chose not to replace an object: by a precondition, or
// because it sent no data.
func declined(list []Exchange) bool {
	return refusedBefore(list) > 0 || !slices.ContainsFunc(list, func(x Exchange) bool { return x.data() })
}
