package faults

import (
	"math/rand/v2"
	"time"
)

// Random returns a plan of n faults for uploads, the same for the same seed.
// They are failures that occur with the service, the network and proxies, at random
// requests and offsets of an upload of size bytes. An uploader that resumes finishes
// with any such plan, because each fault acts at most twice, and none reports a wrong
// offset or ends a session.
func Random(seed uint64, n int, size int64) []Fault {
	r := rand.New(rand.NewPCG(seed, 0x66616b65676373))
	size = min(max(size, 0), 1<<60) // larger than any object, but without overflow
	faults := make([]Fault, n)
	for i := range faults {
		faults[i] = randomFault(r, size)
	}
	return faults
}

func randomFault(r *rand.Rand, size int64) Fault {
	one := func(list ...Op) Op { return list[r.IntN(len(list))] }
	anyOp := func() Op { return one(OpStart, OpPut, OpFinalize, OpQuery, OpInsert) }
	data := func() Op { return one(OpPut, OpFinalize) }
	within := func() int64 { return r.Int64N(size + 1) }
	f := Fault{Skip: r.IntN(3), Times: 1 + r.IntN(2)}
	switch r.IntN(12) {
	case 0:
		f.Match.Op, f.Do = anyOp(), Action{Effect: EffectStatus, Status: []int{408, 429, 500, 502, 503, 504}[r.IntN(6)], Early: r.IntN(2) == 0}
	case 1:
		f.Match.Op, f.Do = anyOp(), Action{Effect: EffectStatus, Status: 503, RetryAfter: []string{"1", "3", "+2s"}[r.IntN(3)]}
	case 2:
		f.Match.Op, f.Do = anyOp(), Action{Effect: EffectStatus, Status: 502, Body: "<html>Bad Gateway</html>"}
	case 3:
		f.Match.Op, f.Do = data(), Action{Effect: EffectStatusAfter, Status: 503, Bytes: within()}
	case 4:
		f.Match.Op, f.Do = anyOp(), Action{Effect: []Effect{EffectReset, EffectClose}[r.IntN(2)]}
	case 5:
		f.Match.Op, f.Do = data(), Action{Effect: EffectCutRequest, Bytes: within()}
	case 6:
		f.Match.Op, f.Do = anyOp(), Action{Effect: EffectLoseReply}
	case 7:
		f.Match.Op, f.Do = anyOp(), Action{Effect: []Effect{EffectCutReply, EffectTruncateReply}[r.IntN(2)], Bytes: r.Int64N(200)}
	case 8:
		f.Match.Op, f.Do = data(), Action{Effect: EffectShortCommit, Bytes: 1 + within()}
	case 9:
		f.Match.Op, f.Do = data(), Action{Effect: EffectNoRange}
	case 10:
		f.Match.Op, f.Do = OpFinalize, Action{Effect: EffectNotFinal}
	case 11:
		f.Match.Op, f.Do = anyOp(), Action{Effect: EffectDelay, For: time.Duration(1 + r.Int64N(int64(5*time.Second)))}
	}
	return f
}
