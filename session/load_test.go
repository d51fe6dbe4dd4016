package session_test

import (
	"errors"
	"testing"

	"gcsup/session"
)

func TestLoad(t *testing.T) {
	const object = "The object bkt/o exceeded the rate limit for object mutation operations (create, update, and delete)."
	for _, test := range []struct {
		name  string
		reply session.Reply
		want  session.Load
	}{
		{"object", session.Reply{Op: session.OpInsert, Status: 200}, session.LoadAccepted},
		{"open session", session.Reply{Op: session.OpQuery, Status: 308}, session.LoadAccepted},
		{"precondition", session.Reply{Op: session.OpInsert, Status: 412, FromService: true}, session.LoadAccepted},
		{"permission", session.Reply{Op: session.OpStart, Status: 403, Reason: "forbidden", FromService: true}, session.LoadAccepted},
		{"credentials", session.Reply{Op: session.OpStart, Status: 401}, session.LoadAccepted},
		{"bucket too fast", session.Reply{Op: session.OpInsert, Status: 429, Reason: "bucketRateLimitExceeded", FromService: true}, session.LoadTooFast},
		{"429 without a body", session.Reply{Op: session.OpInsert, Status: 429}, session.LoadTooFast},
		{"403 of a rate limit", session.Reply{Op: session.OpInsert, Status: 403, Reason: "userRateLimitExceeded", FromService: true}, session.LoadTooFast},
		{"403 of a rate limit without the header", session.Reply{Op: session.OpInsert, Status: 403, Reason: "rateLimitExceeded"}, session.LoadTooFast},
		{"one object", session.Reply{Op: session.OpInsert, Status: 429, Reason: "rateLimitExceeded", Message: object, FromService: true}, session.LoadAccepted},
		{"quota of a day", session.Reply{Op: session.OpInsert, Status: 429, Reason: "dailyLimitExceeded", FromService: true}, session.LoadAccepted},
		{"another quota", session.Reply{Op: session.OpInsert, Status: 429, Reason: "quotaExceeded", FromService: true}, session.LoadAccepted},
		{"503", session.Reply{Op: session.OpInsert, Status: 503}, session.LoadUnavailable},
		{"500", session.Reply{Op: session.OpInsert, Status: 500}, session.LoadUnknown},
		{"408", session.Reply{Op: session.OpInsert, Status: 408}, session.LoadUnknown},
		{"lost", session.Reply{Op: session.OpInsert, Err: errors.New("reset")}, session.LoadUnknown},
		{"proxy", session.Reply{Op: session.OpInsert, Status: 403}, session.LoadUnknown},
		{"captive portal", session.Reply{Op: session.OpInsert, Status: 302, Redirect: "http://portal"}, session.LoadUnknown},
	} {
		if got := test.reply.Load(); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
