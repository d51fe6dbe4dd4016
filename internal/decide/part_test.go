package decide_test

import (
	"errors"
	"io"
	"testing"

	"gcsup/internal/decide"
	"gcsup/internal/multipart"
	"gcsup/session"
)

// sentPart returns the reply to a part of a multipart upload.
func sentPart(r session.Reply) session.Reply {
	r.Op = multipart.OpPart
	return r
}

// listed returns the reply to the question which parts the service has.
func listed(r session.Reply) session.Reply {
	r.Op = multipart.OpList
	return r
}

// noUpload is the answer that the multipart upload does not exist.
func noUploadReply(r session.Reply) bool {
	return r.Status == 404 && r.FromService && r.Reason == "NoSuchUpload"
}

func noUpload() session.Reply { return because(404, "NoSuchUpload") }

// badDigest is the answer that the bytes of a part arrived damaged.
func badDigest() session.Reply { return because(400, "BadDigest") }

// TestPart checks the table of Part: each reply to a part, twice, with an answer
// in between that the service does not have the part.
func TestPart(t *testing.T) {
	unsent, reused := broken(errReset), broken(io.EOF)
	unsent.Unsent, reused.Reused = true, true
	for _, row := range []struct {
		name          string
		reply         session.Reply
		first, second string
	}{
		{"200 with an ETag", status(200), "done", ""},
		{"no reply, and no byte was sent", unsent, "wait send", "wait send"},
		{"no reply, on a reused connection", reused, "query", "wait query"},
		{"no valid ETag", broken(errors.New("the reply has no valid ETag of a part")), "wait query", "wait query"},
		{"a checksum of other bytes", broken(session.ErrChecksum), "wait query", "wait query"},
		{"no credentials", broken(session.ErrCredentials), "ErrCredentials", ""},
		{"a request that cannot be made", broken(session.ErrInvalid), "ErrInvalid", ""},
		{"an upload at another host", broken(session.ErrURIMismatch), "ErrProtocol", ""},

		{"400 of a stranger that names a hash", session.Reply{Status: 400, Message: "bad checksum"}, "wait query", "wait query"},

		{"401", status(401), "send", "ErrCredentials"},
		{"401 of a stranger", stranger(401), "send", "ErrCredentials"},
		{"403", status(403), "ErrPermission", ""},
		{"403 quotaExceeded", because(403, "quotaExceeded"), "ErrQuota", ""},
		{"429 dailyLimitExceeded", because(429, "dailyLimitExceeded"), "ErrQuota", ""},
		{"412 orgPolicyConstraintFailed", because(412, "orgPolicyConstraintFailed"), "ErrPermission", ""},
		{"400 that names a hash", badDigest(), "wait send", "wait send"},
		{"404 NoSuchUpload", noUpload(), "wait query", "wait query"},
		{"404 NoSuchBucket", because(404, "NoSuchBucket"), "wait query", "ErrNotFound"},
		{"400", status(400), "wait query", "ErrProtocol"},
		{"405", status(405), "wait query", "ErrProtocol"},
		{"409", status(409), "wait query", "ErrProtocol"},
		{"410", status(410), "wait query", "ErrNotFound"},
		{"411", status(411), "wait query", "ErrProtocol"},
		{"412", status(412), "wait query", "ErrProtocol"},
		{"416", status(416), "wait query", "ErrProtocol"},
	} {
		s, a := (decide.Part{}).Decide(sentPart(row.reply))
		if describe(a) != row.first {
			t.Errorf("%s: %s, want %s", row.name, describe(a), row.first)
		}
		if a.Step == session.Query {
			if s, a = s.Decide(listed(status(200))); describe(a) != "send" {
				t.Errorf("%s, and the part is not listed: %s, want send", row.name, describe(a))
			}
		}
		if row.second != "" {
			if _, a = s.Decide(sentPart(row.reply)); describe(a) != row.second {
				t.Errorf("%s, again: %s, want %s", row.name, describe(a), row.second)
			}
		}
		if a.Step == session.Fail && !a.Err.Open {
			t.Errorf("%s: the error does not report that the upload is still open", row.name)
		}
	}
}

// TestPartStories checks decisions of Part that depend on several replies, and on replies to the question which
// parts the service has. TestPartModelCheck has the rules for all of them.
func TestPartStories(t *testing.T) {
	for _, story := range []struct {
		name  string
		turns []turn
	}{
		{"the upload is gone", []turn{{listed(noUpload()), "wait query"}, {listed(noUpload()), "absent"}}},
		{"no credentials", []turn{{listed(broken(session.ErrCredentials)), "ErrCredentials"}}},
		{"a request that cannot be made", []turn{{listed(broken(session.ErrInvalid)), "ErrInvalid"}}},
		{"damaged four times", []turn{
			{sentPart(badDigest()), "wait send"}, {sentPart(badDigest()), "wait send"}, {sentPart(badDigest()), "wait send"}, {sentPart(badDigest()), "ErrChecksum"},
		}},
	} {
		var s decide.Part
		for i, turn := range story.turns {
			var a session.Action
			if s, a = s.Decide(turn.reply); describe(a) != turn.want {
				t.Errorf("%s: turn %d, %s: %s, want %s", story.name, i, turn.reply.Op, describe(a), turn.want)
				break
			}
			if a.Step == decide.Absent && !errors.Is(a.Err, session.ErrSessionLost) {
				t.Errorf("%s: %v, want ErrSessionLost", story.name, a.Err)
			}
		}
	}
}
