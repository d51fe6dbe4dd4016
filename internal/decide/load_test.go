package decide_test

import (
	"errors"
	"testing"

	"gcsup/internal/decide"
	"gcsup/session"
)

func TestLoad(t *testing.T) {
	const object = "The object bkt/o exceeded the rate limit for object mutation operations (create, update, and delete)."
	for _, test := range []struct {
		name  string
		reply session.Reply
		want  decide.Load
	}{
		{"object", session.Reply{Op: session.OpInsert, Status: 200}, decide.LoadAccepted},
		{"open session", session.Reply{Op: session.OpQuery, Status: 308}, decide.LoadAccepted},
		{"precondition", session.Reply{Op: session.OpInsert, Status: 412, FromService: true}, decide.LoadAccepted},
		{"permission", session.Reply{Op: session.OpStart, Status: 403, Reason: "forbidden", FromService: true}, decide.LoadAccepted},
		{"credentials", session.Reply{Op: session.OpStart, Status: 401}, decide.LoadAccepted},
		{"bucket too fast", session.Reply{Op: session.OpInsert, Status: 429, Reason: "bucketRateLimitExceeded", FromService: true}, decide.LoadTooFast},
		{"429 without a body", session.Reply{Op: session.OpInsert, Status: 429}, decide.LoadTooFast},
		{"403 of a rate limit", session.Reply{Op: session.OpInsert, Status: 403, Reason: "userRateLimitExceeded", FromService: true}, decide.LoadTooFast},
		{"403 of a rate limit without the header", session.Reply{Op: session.OpInsert, Status: 403, Reason: "rateLimitExceeded"}, decide.LoadTooFast},
		{"one object", session.Reply{Op: session.OpInsert, Status: 429, Reason: "rateLimitExceeded", Message: object, FromService: true}, decide.LoadAccepted},
		{"quota of a day", session.Reply{Op: session.OpInsert, Status: 429, Reason: "dailyLimitExceeded", FromService: true}, decide.LoadAccepted},
		{"another quota", session.Reply{Op: session.OpInsert, Status: 429, Reason: "quotaExceeded", FromService: true}, decide.LoadAccepted},
		{"503", session.Reply{Op: session.OpInsert, Status: 503}, decide.LoadUnavailable},
		{"500", session.Reply{Op: session.OpInsert, Status: 500}, decide.LoadUnknown},
		{"408", session.Reply{Op: session.OpInsert, Status: 408}, decide.LoadUnknown},
		{"lost", session.Reply{Op: session.OpInsert, Err: errors.New("reset")}, decide.LoadUnknown},
		{"proxy", session.Reply{Op: session.OpInsert, Status: 403}, decide.LoadUnknown},
		{"captive portal", session.Reply{Op: session.OpInsert, Status: 302, Redirect: "http://portal"}, decide.LoadUnknown},
	} {
		if got := decide.LoadOf(&test.reply); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
