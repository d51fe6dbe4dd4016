package fakegcs

import (
	"sync"
	"time"

	"gcsup/fakegcs/faults"
)

// Idempotency tokens: the service does not execute a request with the token of an earlier
// one, but returns the first reply (https://github.com/googleapis/google-cloud-cpp/pull/12347).
//
// The details are those that zig-gcp has measured in September 2026
// (https://github.com/kmoneil/zig-gcp/blob/main/src/storage/idempotency.zig). Tokens have an
// effect on an insert in one request, and on a delete and a patch of an object. Every other
// request is executed each time, and so is a request that failed before. The body of a repeat is
// ignored. The same token on another object is another token. A repeat was recognized after
// 115 s, and not after 130 s.
//
// Two cases are not known. Here, the preconditions of a repeat are ignored, and a repeat that
// arrives while the first request is being executed is executed, too.

// idempotencyHeader is the header of tokens.
const idempotencyHeader = "X-Goog-Gcs-Idempotency-Token"

const (
	replyKept    = 2 * time.Minute // how long a reply is kept
	repliesLimit = 4096            // how many replies are kept
)

// intention identifies the requests that have one effect together.
type intention struct {
	token, bucket, object, generation string
	op                                faults.Op
}

// firstReplies keeps the replies of requests that must not be executed again.
type firstReplies struct {
	mu    sync.Mutex
	kept  map[intention]firstReply
	order []intention // the oldest first
}

type firstReply struct {
	reply *reply
	sent  time.Time
}

// once returns the first reply to the intention of q. If there is none, it calls execute, and
// keeps its reply if that is a success.
func (f *firstReplies) once(q *request, now time.Time, execute func() *reply) *reply {
	i, ok := q.intention()
	if !ok {
		return execute()
	}
	f.mu.Lock()
	first, repeated := f.kept[i]
	f.mu.Unlock()
	if repeated && now.Sub(first.sent) < replyKept {
		q.replayed = true
		return first.reply.clone()
	}
	r := execute()
	if r.status/100 == 2 {
		f.keep(i, firstReply{r.clone(), now})
	}
	return r
}

// intention returns the intention of q. ok is false if q is executed each time.
func (q *request) intention() (i intention, ok bool) {
	token := q.Header.Get(idempotencyHeader)
	if token == "" || q.xml || q.op != faults.OpInsert && q.op != faults.OpDelete && q.op != faults.OpPatch {
		return intention{}, false
	}
	q.nameUpload()
	return intention{token, q.bucket, q.object, q.query.Get("generation"), q.op}, true
}

// keep keeps a reply, and removes those that are no longer needed.
func (f *firstReplies) keep(i intention, r firstReply) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.order) > 0 && (len(f.order) >= repliesLimit || r.sent.Sub(f.kept[f.order[0]].sent) >= replyKept) {
		delete(f.kept, f.order[0])
		f.order = f.order[1:]
	}
	if _, ok := f.kept[i]; ok {
		return // both requests were executed at the same time
	}
	if f.kept == nil {
		f.kept = map[intention]firstReply{}
	}
	f.kept[i] = r
	f.order = append(f.order, i)
}
