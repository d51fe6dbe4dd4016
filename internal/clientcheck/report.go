package clientcheck

import (
	"fmt"
	"strings"
	"time"
)

// Outcome is a verdict in one word.
type Outcome string

// The outcomes of a script.
const (
	Passed    Outcome = "passed"
	Faulty    Outcome = "failed"
	Unmet     Outcome = "unmet"    // the client did not meet the situation, and made no other mistake
	Uncounted Outcome = "disputed" // the client fails a disputed script
)

// Outcome returns the verdict in one word.
func (v Verdict) Outcome() Outcome {
	switch {
	case len(v.Failures) > 0 && v.Disputed != "":
		return Uncounted
	case len(v.Failures) > 0:
		return Faulty
	case !v.Met:
		return Unmet
	}
	return Passed
}

// Totals count outcomes.
type Totals map[Outcome]int

// String returns the totals in one line.
func (t Totals) String() string {
	n := 0
	for _, k := range t {
		n += k
	}
	return fmt.Sprintf("%d scripts: %d passed, %d failed, %d unmet, %d disputed",
		n, t[Passed], t[Faulty], t[Unmet], t[Uncounted])
}

// Text returns the result for people: one line if the client passed, and otherwise with what
// happened.
func (r Result) Text() string {
	v := r.Verdict
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s %s\n", v.Outcome(), r.Script.Name)
	if len(v.Failures) == 0 {
		return b.String()
	}
	line := func(format string, args ...any) { fmt.Fprintf(&b, "         "+format+"\n", args...) }
	line("%s", r.Script.Does)
	for _, f := range v.Failures {
		at := ""
		if f.Exchange > 0 {
			at = fmt.Sprintf(" (request %d)", f.Exchange)
		}
		line("%s, %s: %s%s", f.Part, f.Rule, f.Text, at)
	}
	line("fact: %s", r.Script.Fact)
	line("source: %s", r.Script.Source)
	if v.Disputed != "" {
		line("does not count: %s", v.Disputed)
	}
	if v.Message != "" {
		line("the client %s: %s", v.End, strings.ReplaceAll(v.Message, "\n", "\n         | "))
	}
	for i, x := range r.Exchanges {
		if i == shownExchanges {
			line("... %d more requests", len(r.Exchanges)-i)
			break
		}
		line("%3d %s", i+1, x)
	}
	return b.String()
}

// shownExchanges is how many exchanges of a failed script are reported.
const shownExchanges = 100

// Line is the JSON form of a result.
type Line struct {
	Type    string  `json:"type"` // "script"
	Outcome Outcome `json:"outcome"`
	Verdict
	ElapsedMS int64    `json:"elapsed_ms"`
	Does      string   `json:"does"`
	Fact      string   `json:"fact"`
	Source    string   `json:"source"`
	Exchanges []string `json:"exchanges,omitempty"` // in short, if the script failed
}

// Line returns the JSON form of r.
func (r Result) Line() Line {
	l := Line{
		Type: "script", Outcome: r.Verdict.Outcome(), Verdict: r.Verdict,
		ElapsedMS: int64(r.Verdict.Cost.Elapsed / time.Millisecond),
		Does:      r.Script.Does, Fact: r.Script.Fact, Source: r.Script.Source,
	}
	if len(r.Verdict.Failures) > 0 {
		for _, x := range r.Exchanges[:min(len(r.Exchanges), shownExchanges)] {
			l.Exchanges = append(l.Exchanges, x.String())
		}
	}
	return l
}
