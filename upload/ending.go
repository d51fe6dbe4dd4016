package upload

// end describes an upload that ended, for the decision about what is left of it: the saved upload, and what the
// service stores.
type end struct {
	of         medium
	made       bool // the object exists
	savable    bool // the upload has a lease, or had it
	saved      bool // the store has the upload, and the lease is held
	lost       bool // another process has the lease
	canceled   bool // by [Uploader.Cancel], which then removes what is saved
	dead       fact // the next call cannot continue what is stored
	refused    bool // a precondition does not hold
	final      bool // the next call would be refused, too
	unexpected bool // the source does not have the bytes that the caller expects
	unended    bool // the input of a spooled stream did not end
	released   bool // bytes of a spooled stream are no longer on disk, because the service had committed them
	outdated   bool // the offsets and checksums of this call must not replace those that are saved
}

// medium is where the bytes of an upload are between two calls.
type medium int8

const (
	ofStream medium = iota // nowhere: a stream
	ofFile                 // in a file, or in another source that can be read again
	ofParts                // in a file that is sent in parts
	ofSpool                // a stream, on disk
)

// fate is what happens to what is left of an upload.
type fate int8

const (
	leave            fate = iota // nothing
	keep                         // the saved upload is updated for the next call
	keepOld                      // the saved upload stays as it is
	discard                      // it is deleted, with the files of a spool
	cancelSession                // the session is canceled
	discardAndCancel             // both
	remove                       // all that the service stores is removed, and then the saved upload; if something cannot be removed, both stay
	removeOrphaned               // the same, if the other process deleted the saved upload without it
	renew                        // the saved upload stays, without its session, which is canceled
	keepIncomplete               // it stays, although the object cannot be made
	ask                          // the service must be asked whether the session has ended
)

// ending decides what happens to what is left of an upload. The first row that applies counts:
//
//	                                           stream    file             parts     spool
//	cannot be saved, in parts                                             remove
//	another process has the lease                        leave            orphaned  leave
//	the object is made                         leave     discard          remove    discard
//	is not saved, unexpected bytes             cancel    cancel           leave     discard, cancel
//	is not saved                               cancel    leave            leave     discard, cancel
//	Cancel ended it                                      keep             keep      keep
//	the input did not end                                                           discard, cancel
//	unexpected bytes                                     discard, cancel  remove    (as dead)
//	refused, and will be again                           discard          remove    discard, cancel
//	dead is not known                                                               ask
//	dead, bytes are released, and refused                                           discard, cancel
//	dead, bytes are released                                                        keep incomplete
//	dead                                                 discard          remove    renew
//	outdated                                             keep old         keep      keep
//	otherwise                                            keep             keep      keep
//
// Parts whose object is made are removed even if another process has the lease.
func ending(e end) fate {
	switch {
	case e.of == ofStream && !e.made:
		return cancelSession
	case e.of == ofStream:
		return leave
	case e.of == ofFile:
		return endingOfFile(e)
	case e.of == ofParts:
		return endingOfParts(e)
	}
	return endingOfSpool(e)
}

func endingOfFile(e end) fate {
	switch {
	case e.lost || !e.saved && !e.unexpected:
		return leave
	case !e.saved:
		return cancelSession
	case e.made:
		return discard
	case e.canceled:
	case e.unexpected:
		return discardAndCancel
	case e.dead == yes || e.refused && e.final:
		return discard
	}
	if e.outdated {
		return keepOld
	}
	return keep
}

func endingOfParts(e end) fate {
	switch {
	case !e.savable || e.made:
		return remove // if the lease is lost, without the saved upload
	case e.lost:
		return removeOrphaned
	case !e.saved:
		return leave // nothing was sent
	case e.canceled:
		return keep
	case e.unexpected || e.dead == yes || e.refused && e.final:
		return remove
	}
	return keep
}

func endingOfSpool(e end) fate {
	switch {
	case e.lost:
		return leave
	case e.made:
		return discard
	case e.canceled && e.saved:
		return keep
	case e.unended || !e.saved || e.refused && e.final:
		return discardAndCancel
	case e.dead == unknown:
		return ask
	case e.dead == no:
		return keep
	case !e.released:
		return renew
	case e.refused:
		return discardAndCancel
	}
	return keepIncomplete
}
