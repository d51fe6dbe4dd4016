package decide_test

import (
	"crypto/x509"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gcsup/backoff"
	"gcsup/internal/wiretest"
	"gcsup/session"
)

var (
	errReset    = &os.SyscallError{Syscall: "read", Err: syscall.ECONNRESET}
	errTrust    = x509.UnknownAuthorityError{}
	errProxy407 = &backoff.ProxyError{Proxy: "http://proxy", Code: 407, Status: "407 Who are you?"}
)

// sentinelNames has the errors that a driver checks.
var sentinelNames = map[error]string{
	session.ErrInvalid: "ErrInvalid", session.ErrCredentials: "ErrCredentials", session.ErrPermission: "ErrPermission",
	session.ErrNotFound: "ErrNotFound", session.ErrQuota: "ErrQuota", session.ErrPrecondition: "ErrPrecondition",
	session.ErrSessionLost: "ErrSessionLost", session.ErrCanceled: "ErrCanceled", session.ErrChecksum: "ErrChecksum",
	session.ErrUnexpectedData: "ErrUnexpectedData", session.ErrProtocol: "ErrProtocol",
	session.ErrOutcomeUnknown: "ErrOutcomeUnknown",
}

// describe returns an action in words: "send", "wait query", "wait 30s begin",
// "done", "ErrSessionLost".
func describe(a session.Action) string {
	if a.Step == session.Fail {
		for kind, name := range sentinelNames {
			if errors.Is(a.Err, kind) {
				return name
			}
		}
		return "an error without a sentinel"
	}
	var words []string
	if a.Wait {
		words = append(words, "wait")
	}
	if a.RetryAfter > 0 {
		words = append(words, a.RetryAfter.String())
	}
	return strings.Join(append(words, string(a.Step)), " ")
}

// sentinelsOf returns how many sentinel errors err wraps.
func sentinelsOf(err error) (n int) {
	for kind := range sentinelNames {
		if errors.Is(err, kind) {
			n++
		}
	}
	return n
}

// The functions below return replies. Their names are short, because the stories
// have many of them.
func finalize(sent int64, r session.Reply) session.Reply {
	r.Op, r.Sent = session.OpFinalize, sent
	return r
}

func stat(r session.Reply) session.Reply {
	r.Op = session.OpStat
	return r
}

func held(n int64) session.Reply { return session.Reply{Status: 308, Committed: n} }

func status(code int) session.Reply {
	return session.Reply{Status: code, Committed: -1, FromService: code >= 400}
}

func made(size int64) session.Reply {
	return session.Reply{Status: 200, Committed: -1, Object: object(size)}
}

func broken(err error) session.Reply { return session.Reply{Err: err, Committed: -1} }

func ours(size int64) session.Reply { r := made(size); r.Ours = true; return r }

// object returns a finished object of a size.
func object(size int64) *session.Object {
	return &session.Object{Bucket: "bucket", Name: "object", Generation: 7, Size: size}
}

func freshURI(t testing.TB) session.URI {
	return wiretest.URI(t, session.DefaultEndpoint, "/upload/storage/v1/b/bucket/o?upload_id=x")
}

// turn is a reply, and the action that must follow.
type turn struct {
	reply session.Reply
	want  string
}

// findCycle returns the nodes of a cycle in a graph, or nil. edges[i] are the nodes that an edge
// leads to from node i.
func findCycle(edges [][]int) []int {
	const unseen, open, closed = 0, 1, 2
	mark := make([]int, len(edges))
	var path []int
	var visit func(id int) (cycle []int)
	visit = func(id int) []int {
		mark[id] = open
		path = append(path, id)
		for _, next := range edges[id] {
			if mark[next] == open {
				return path[slices.Index(path, next):]
			}
			if mark[next] == unseen {
				if cycle := visit(next); cycle != nil {
					return cycle
				}
			}
		}
		path = path[:len(path)-1]
		mark[id] = closed
		return nil
	}
	for id := range edges {
		if mark[id] == unseen {
			if cycle := visit(id); cycle != nil {
				return cycle
			}
		}
	}
	return nil
}
