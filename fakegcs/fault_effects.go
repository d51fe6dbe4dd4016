package fakegcs

import (
	"time"

	"gcsup/fakegcs/faults"
)

// fault is the effect of a fault plan or a retry test on one request. Each handler
// reads the fields that concern it and does not know the effects. newFault sets the
// fields of one effect. The zero value does nothing.
type fault struct {
	effect     faults.Effect // for the request log
	connection bool          // it acts on the connection, not on the reply
	entry      entryFault
	body       bodyFault
	session    sessionFault
	object     objectFault
	reply      replyFault
}

// entryFault acts before the operation.
type entryFault struct {
	status  *faults.Action // the reply instead of that of the operation, or nil
	revoke  bool           // the bearer token is refused from now on
	hangUp  bool           // there is no reply
	wait    bool           // wait for waitFor, or indefinitely if that is 0
	waitFor time.Duration
	stalled bool // the waiting request does not block its session
}

// bodyFault acts on the request's body at the offset at.
type bodyFault struct {
	cut, stall, corrupt bool
	at                  int64
	stallFor            time.Duration // 0 means indefinitely
}

// sessionFault acts on an upload session. A zero number does nothing.
type sessionFault struct {
	forget bool      // the session is no longer found
	end    string    // the state in which it ends: dead or canceled
	cause  *apiError // of a dead one

	foreign int64 // number of zeros from another client
	rewind  int64 // number of lost bytes

	short       int64          // number of bytes of the request that are not kept
	statusAfter *faults.Action // the reply after the bytes up to keepTo are kept, or nil
	keepTo      int64          // with statusAfter: an offset in the object
	hideFor     time.Duration  // how long the older offset is reported after a request that is cut off

	notFinal      bool          // do not make the object
	finalizeAfter time.Duration // wait before making the object

	noRange bool  // leave Range out of the reply
	rangeBy int64 // report that many bytes more than are committed
}

// objectFault acts on the object in the reply.
type objectFault struct{ wrongHash, omitSize, omitHash bool }

// replyFault acts on the reply. Bytes are those of its body.
type replyFault struct {
	early       bool // reply before the request's body is read
	readFirst   bool // without a reply: read the body first, so that the close is in order
	reset       bool // without a reply: reset the connection
	lose        bool // reset the connection instead of a reply
	truncate    bool // end the body after truncateTo bytes
	truncateTo  int64
	cut         bool // send cutAfter bytes, then close
	cutAfter    int64
	hold        bool // send holdAfter bytes, then wait for holdFor, or indefinitely if that is 0
	holdAfter   int64
	holdFor     time.Duration
	lastOne     bool          // announce that the connection ends
	closesAfter time.Duration // close the connection after this time, without an announcement
}

// newFault returns the fault of an action; a nil do is none. data reports whether the
// request brings bytes to a session.
func newFault(do *faults.Action, data bool) fault {
	if do == nil {
		return fault{}
	}
	f := fault{effect: do.Effect}
	switch do.Effect {
	case faults.EffectStatus:
		f.entry.status, f.reply.early = do, do.Early
	case faults.EffectStatusAfter:
		f.reply.early = do.Early
		if data {
			f.session.statusAfter, f.session.keepTo = do, do.Bytes
		} else {
			f.entry.status = do
		}
	case faults.EffectRevoke:
		f.entry.revoke = true
	case faults.EffectReset:
		f.connection, f.entry.hangUp, f.reply.reset = true, true, true
	case faults.EffectClose:
		f.connection, f.entry.hangUp, f.reply.readFirst = true, true, true
	case faults.EffectStall:
		f.entry.wait, f.entry.waitFor, f.entry.stalled = true, do.For, true
	case faults.EffectDelay:
		f.entry.wait, f.entry.waitFor = true, do.For

	case faults.EffectCutRequest:
		f.body.cut, f.body.at = true, do.Bytes
	case faults.EffectLateCommit:
		f.body.cut, f.body.at = true, do.Bytes
		f.session.hideFor = do.For
	case faults.EffectStallBody:
		f.body.stall, f.body.at, f.body.stallFor = true, do.Bytes, do.For
	case faults.EffectCorrupt:
		f.body.corrupt, f.body.at = true, do.Bytes

	case faults.EffectNotFound:
		f.session.forget = true
	case faults.EffectGone:
		f.session.end, f.session.cause = dead, faultCause(do)
	case faults.EffectCanceled:
		f.session.end = canceled
	case faults.EffectForeignWrite:
		f.session.foreign = do.Bytes
	case faults.EffectRewind:
		f.session.rewind = do.Bytes
	case faults.EffectShortCommit:
		f.session.short = do.Bytes
	case faults.EffectNotFinal:
		f.session.notFinal = true
	case faults.EffectSlowFinalize:
		f.session.finalizeAfter = do.For
	case faults.EffectNoRange:
		f.session.noRange = true
	case faults.EffectWrongRange:
		f.session.rangeBy = do.Bytes

	case faults.EffectWrongHash:
		f.object.wrongHash = true
	case faults.EffectOmitSize:
		f.object.omitSize = true
	case faults.EffectOmitHash:
		f.object.omitHash = true

	case faults.EffectLoseReply:
		f.connection, f.reply.lose = true, true
	case faults.EffectTruncateReply:
		f.reply.truncate, f.reply.truncateTo = true, do.Bytes
	case faults.EffectCutReply:
		f.connection, f.reply.cut, f.reply.cutAfter = true, true, do.Bytes
	case faults.EffectStallReply:
		f.connection, f.reply.hold, f.reply.holdAfter, f.reply.holdFor = true, true, do.Bytes, do.For
	case faults.EffectGoAway:
		f.connection, f.reply.lastOne = true, true
	case faults.EffectCloseAfter:
		f.connection, f.reply.lastOne, f.reply.closesAfter = true, true, do.For
	}
	return f
}
