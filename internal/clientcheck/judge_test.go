package clientcheck

import (
	"slices"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
)

func TestParseRange(t *testing.T) {
	for header, want := range map[string]Range{
		"":                  {Last: -1, Total: -1},
		"bytes */*":         {Given: true, Valid: true, Query: true, Last: -1, Total: -1},
		"bytes */7":         {Given: true, Valid: true, Query: true, Last: -1, Total: 7},
		"bytes 0-9/*":       {Given: true, Valid: true, Last: 9, Total: -1},
		"bytes 5-9/10":      {Given: true, Valid: true, First: 5, Last: 9, Total: 10},
		"bytes 5-*/10":      {Given: true, Valid: true, First: 5, Last: -1, Total: 10},
		"bytes 0-9":         {Given: true, Last: -1, Total: -1},
		"0-9/10":            {Given: true, Last: -1, Total: -1},
		"bytes 0--1/0":      {Given: true, Last: -1, Total: -1},
		"bytes 9-8/9":       {Given: true, First: 9, Last: 8, Total: 9},
		"bytes 0-9/10 more": {Given: true, Last: -1, Total: -1},
	} {
		if got := parseRange(header); got != want {
			t.Errorf("%q: %+v, want %+v", header, got, want)
		}
	}
}

// chunk returns a data request [from, to) of an object of total bytes on session 1, and its reply.
func chunk(from, to, total int64, status int) Exchange {
	x := Exchange{
		Op: faults.OpPut, Session: 1, Range: Range{Given: true, Valid: true, First: from, Last: to - 1, Total: total},
		Length: to - from, Received: to - from, Status: status, Partial: status == 308,
	}
	if to == total {
		x.Op = faults.OpFinalize
	}
	return x
}

func query(status int) Exchange {
	return Exchange{
		Op: faults.OpQuery, Session: 1, Range: Range{Given: true, Valid: true, Query: true, Last: -1, Total: -1},
		Status: status, Partial: status == 308,
	}
}

// seen returns evidence of an object and the ends of the runs.
func seen(o Object, ends ...End) Evidence { return Evidence{Object: o, Ends: ends} }

func (e Evidence) after(list ...Exchange) Evidence { e.Exchanges = list; return e }

// faulted returns x as the exchange on which a fault acted.
func faulted(x Exchange, effect faults.Effect) Exchange { x.Fault = effect; return x }

// TestJudge checks each rule of the judge with the smallest evidence that it is about.
func TestJudge(t *testing.T) {
	const q = Granularity
	faulty := Script{Faults: on("", faults.Action{Effect: faults.EffectReset})}
	mayFail, exists, appears := Script{MayFail: true}, Script{Exists: true}, Script{Appears: true}
	sent, refused := chunk(0, q, q, 200), chunk(0, q, q, 412)
	acted := func(e Evidence) Evidence { e.Acted = true; return e }
	insert := func(token, object string) Exchange {
		return Exchange{Op: faults.OpInsert, Bucket: "b", Object: object, Token: token, Status: 200}
	}
	for name, test := range map[string]struct {
		script Script
		e      Evidence
		want   string // "PART RULE" of each failure
		unmet  bool
	}{
		"right":          {e: seen(Right, Succeeded)},
		"absent":         {e: seen(Absent, Failed), want: "object absent"},
		"no end":         {e: seen(Absent, NoEnd), want: "truth no-end"},
		"false failure":  {e: seen(Right, Failed), want: "truth false-failure"},
		"wrong":          {script: mayFail, e: seen(Wrong, Failed), want: "object wrong"},
		"wrong, success": {e: seen(Wrong, Succeeded), want: "object wrong truth false-success"},
		"may fail":       {script: mayFail, e: seen(Absent, Failed)},
		"false success":  {script: mayFail, e: seen(Absent, Succeeded), want: "object absent truth false-success"},

		"fault acted":           {script: faulty, e: acted(seen(Right, Succeeded))},
		"fault did not act":     {script: faulty, e: seen(Right, Succeeded), unmet: true},
		"killed":                {script: Script{Kill: true}, e: seen(Right, Killed, Succeeded)},
		"ended before the kill": {script: Script{Kill: true}, e: seen(Right, Succeeded), unmet: true},

		"kept, failed":           {script: exists, e: seen(Kept, Failed)},
		"kept, nothing sent":     {script: exists, e: seen(Kept, Succeeded)},
		"kept, refused":          {script: appears, e: seen(Kept, Succeeded).after(refused)},
		"kept, success":          {script: appears, e: seen(Kept, Succeeded).after(sent), want: "truth false-success"},
		"replaced":               {script: exists, e: seen(Right, Succeeded).after(sent)},
		"replaced after refusal": {script: exists, e: seen(Right, Succeeded).after(refused, sent), want: "object replaced"},
		"own object, refused":    {e: seen(Right, Succeeded).after(sent, refused)},
	} {
		v := Judge(test.script, test.e)
		if got := rules(v.Failures); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if v.Met == test.unmet {
			t.Errorf("%s: met is %v", name, v.Met)
		}
	}
	gone := []Exchange{chunk(0, q, 9*q, 404), chunk(0, q, 9*q, 404), chunk(0, q, 9*q, 404)}
	openEnded, malformed, longer, other := chunk(0, q, -1, 308), chunk(0, q, 9*q, 400), chunk(0, q, 9*q, 400), sent
	openEnded.Range.Last, openEnded.Length = -1, -1
	malformed.Range.Valid = false
	longer.Length++
	other.Session = 2
	both := func(first, second Exchange, at time.Duration) []Exchange {
		first.Until, second.At, second.Until = 2, at, 5
		return []Exchange{first, second}
	}
	early, late := chunk(0, q, 2*q, 308), chunk(q, 2*q, 2*q, 200)
	otherRun := late
	otherRun.Run = 2
	for name, test := range map[string]struct {
		damages bool
		list    []Exchange
		want    string
	}{
		"right":           {list: []Exchange{chunk(0, 2*q, 2*q+1, 308), chunk(2*q, 2*q+1, 2*q+1, 200)}},
		"granularity":     {list: []Exchange{chunk(0, q+1, 9*q, 308)}, want: "protocol granularity"},
		"open-ended":      {list: []Exchange{openEnded}},
		"malformed range": {list: []Exchange{malformed}, want: "protocol content-range"},
		"length":          {list: []Exchange{longer}, want: "protocol length"},
		"offset":          {list: []Exchange{chunk(q, 2*q, 9*q, 503)}, want: "protocol offset"},
		"503 of a fault":  {list: []Exchange{faulted(chunk(q, 2*q, 9*q, 503), faults.EffectStatus)}},
		"refused":         {list: []Exchange{chunk(0, q, q, 400)}, want: "protocol refused"},
		"refused start":   {list: []Exchange{{Op: faults.OpStart, Status: 400}}, want: "protocol refused"},
		"refused listing": {list: []Exchange{{Op: faults.OpList, Status: 400}}},
		"checksum":        {damages: true, list: []Exchange{chunk(0, q, q, 400)}},
		"refused put":     {damages: true, list: []Exchange{chunk(0, q, 9*q, 400)}, want: "protocol refused"},
		"gone":            {list: gone},
		"dead session":    {list: slices.Concat(gone, gone), want: "protocol dead-session"},
		"dead, new one":   {list: append(slices.Clone(gone), other)},
		"one by one":      {list: both(early, late, 2)},
		"two at once":     {list: both(early, late, 1), want: "protocol overlap"},
		"broken off":      {list: both(chunk(0, q, 2*q, 0), chunk(0, q, 2*q, 308), 1)},
		"cut, sent again": {list: both(faulted(early, faults.EffectLoseReply), late, 1)},
		"query meanwhile": {list: both(early, query(308), 1)},
		"two sessions":    {list: both(early, other, 1)},
		"after a kill":    {list: both(early, otherRun, 1)},
		"token":           {list: []Exchange{insert("t", "x"), insert("t", "y")}, want: "protocol token"},
		"token repeated":  {list: []Exchange{insert("t", "x"), insert("t", "x"), insert("u", "y"), insert("", "z")}},
	} {
		v := Judge(Script{Damages: test.damages}, seen(Right, Succeeded).after(test.list...))
		if got := rules(v.Failures); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// rules returns the parts and rules of failures as one text.
func rules(list []Failure) string {
	text := ""
	for _, f := range list {
		if text != "" {
			text += " "
		}
		text += string(f.Part) + " " + f.Rule
	}
	return text
}

func TestDisputedScriptDoesNotCount(t *testing.T) {
	v := Judge(Script{Disputed: "a report"}, seen(Absent, Failed))
	if !v.Failed(PartObject) || !v.Passed() {
		t.Errorf("%+v", v)
	}
	if v = Judge(Script{}, seen(Absent, Failed)); v.Passed() {
		t.Errorf("%+v", v)
	}
}

func TestCost(t *testing.T) {
	const q = Granularity
	first, last := chunk(0, q, 2*q, 308), chunk(q, 2*q, 2*q, 200)
	lost := faulted(chunk(0, q, 2*q, 0), faults.EffectLoseReply)
	insert := func(status int) Exchange { return Exchange{Op: faults.OpInsert, Received: 2*q + 400, Status: status} }
	for name, test := range map[string]struct {
		list []Exchange
		want Cost
	}{
		"once":   {[]Exchange{first, last}, Cost{Sent: 2 * q}},
		"asked":  {[]Exchange{lost, query(308), last}, Cost{Sent: 2 * q}},
		"blind":  {[]Exchange{lost, lost, first, last}, Cost{Sent: 4 * q, Twice: 2 * q, Blind: 2}},
		"insert": {[]Exchange{insert(503), insert(200)}, Cost{Sent: 4 * q, Twice: 2 * q}},
	} {
		test.want.Requests, test.want.Open, test.want.Elapsed = len(test.list), 1, time.Second
		e := Evidence{Exchanges: test.list, Size: 2 * q, Open: 1, Elapsed: time.Second}
		if got := costOf(e); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// TestScripts checks that the scripts are complete, and their plans valid.
func TestScripts(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Scripts() {
		if names[s.Name] || s.Name == "" {
			t.Errorf("script %q: the name is empty or occurs twice", s.Name)
		}
		names[s.Name] = true
		if s.Does == "" || s.Fact == "" || s.Source == "" {
			t.Errorf("script %s has no description, fact or source", s.Name)
		}
		if s.Change && !s.Kill {
			t.Errorf("script %s changes the source for a second run that it does not have", s.Name)
		}
		if s.Faults == nil {
			continue
		}
		plan := s.Faults(DefaultSize)
		if len(plan) == 0 {
			t.Errorf("script %s has an empty plan", s.Name)
		}
		for _, f := range plan {
			if err := f.Validate(); err != nil {
				t.Errorf("script %s: %v", s.Name, err)
			}
		}
	}
}
