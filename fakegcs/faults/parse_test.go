package faults_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
)

func TestParse(t *testing.T) {
	good := `[
  {"match": {"op": "put", "from": 1, "to": 9}, "skip": 2, "times": -1, "do": {"effect": "status", "status": 503, "retryAfter": "+5s"}},
  {"do": {"effect": "stall", "for": "1m30s"}},
  {"do": {"effect": "status", "status": 307, "location": "https://other.invalid/"}}
]`
	list, err := faults.Parse(strings.NewReader(good))
	if err != nil || len(list) != 3 || list[1].Do.For != 90*time.Second || list[2].Do.Location != "https://other.invalid/" || list[0].Match.To != 9 {
		t.Fatalf("%+v, %v", list, err)
	}
	text, err := json.Marshal(list)
	require.NoError(t, err)
	again, err := faults.Parse(bytes.NewReader(text))
	if err != nil || fmt.Sprint(again) != fmt.Sprint(list) {
		t.Errorf("a round trip gives %v, %v", again, err)
	}
	for _, test := range []struct{ plan, want string }{
		{``, "line 1: not a JSON array"},
		{`{}`, "line 1: not a JSON array"},
		{"[\n{\"do\":{\"effect\":\"reset\"}},\n\n{\"match\":{\"oops\":1},\"do\":{\"effect\":\"reset\"}}]", `line 4: fault 2: json: unknown field "oops"`},
		{`[{"do":{"effect":"reset","oops":1}}]`, `unknown field "oops"`},
		{`[{"do":{}}]`, "do.effect: missing"},
		{"[\n{\"do\":{\"effect\":\"status\",\"status\":\"503\"}}]", "line 2: fault 1: do.status: want a whole number, not string"},
		{`[{"do":{"effect":"delay","for":5}}]`, "do.for: want text, not number"},
		{`[{"do":{"effect":"status","status":503,"early":"yes"}}]`, "do.early: want true or false, not string"},
		{`[{"match":{"op":"put","nth":1.5},"do":{"effect":"reset"}}]`, "match.nth: want a whole number, not number 1.5"},
		{`[{"do":{"effect":"reset"},"times":"x"}]`, "times: want a whole number, not string"},
		{`[{"match":"put","do":{"effect":"reset"}}]`, "match: want an object, not string"},
		{`[{"do":"reset"}]`, "do: want an object, not string"},
		{`[{"do":{"effect":"delay","for":"5"}}]`, `do.for: "5" is not a duration`},
		{`[5]`, "fault 1: want an object, not number"},
		{`[{"do":{"effect":"explode"}}]`, `there is no effect "explode"`},
		{`[{"match":{"op":"fly"},"do":{"effect":"reset"}}]`, `there is no operation "fly"`},
		{`[{"do":{"effect":"status"}}]`, "do.status: missing"},
		{`[{"do":{"effect":"reset","status":503}}]`, `"reset" does not use it`},
		{`[{"do":{"effect":"reset","bytes":3}}]`, `"reset" does not use it`},
		{`[{"do":{"effect":"cut-reply","bytes":-3}}]`, "negative"},
		{`[{"do":{"effect":"delay"}}]`, "do.for: missing"},
		{`[{"do":{"effect":"delay","for":"soon"}}]`, `"soon" is not a duration`},
		{`[{"match":{"nth":-1},"do":{"effect":"reset"}}]`, "match.nth: -1"},
		{`[{"do":{"effect":"rewind"}}]`, "do.bytes: missing"},
		{`[{"times":-2,"do":{"effect":"reset"}}]`, "times: -2"},
		{`[{"match":{"from":9,"to":3},"do":{"effect":"reset"}}]`, "not a range"},
		{`[{"do":{"effect":"reset"}}`, "no end"},
		{`[{"do":{"effect":"reset","location":"/x"}}]`, "uses no body"},
		{`[{"do":{"effect":"status","status":302,"location":"/x","message":"m"}}]`, "replace the JSON error"},
		{`[{"do":{"effect":"status","status":404,"contentType":"text/html","reason":"r"}}]`, "replace the JSON error"},
		{`[{"do":{"effect":"close-after"}}]`, "do.for: missing"},
		{`[{"do":{"effect":"omit-size","bytes":1}}]`, "do.bytes"},
		{`[] []`, "more after the end"},
	} {
		if _, err := faults.Parse(strings.NewReader(test.plan)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Parse(%s) = %v, want %q", test.plan, err, test.want)
		}
	}
}
