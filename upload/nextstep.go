package upload

// facts are what an upload of a file knows when it decides what to do next. A step finds out a fact that is
// unknown, if the decision depends on it.
type facts struct {
	saved    savedState
	restart  bool // the caller asks to start over
	differs  bool // the options of the call are not those of the saved upload
	unusable bool // nothing can be sent to the session of the saved upload, for example because it is of another endpoint
	changed  fact // the source is not the one with which the saved upload began
	replace  bool // the upload of a changed source starts over
	made     fact // the object exists: another process made it, or the saved upload that has ended
	unmet    fact // a precondition requires an object at the destination, and there is none
	small    fact // the source is in memory, and is sent in one request
	parts    divided
	tried    tried // the outcome of the last session
}

// A fact is unknown until a step has found it out.
type fact int8

const (
	unknown fact = iota
	no
	yes
)

// factOf returns a fact that is known.
func factOf(is bool) fact {
	if is {
		return yes
	}
	return no
}

// savedState is what the store has of an upload.
type savedState int8

const (
	nothingSaved savedState = iota
	savedSession
	savedParts
	savedRemoval // parts of an upload that has ended, of which only the removal is left
)

// divided tells whether a file is sent in parts.
type divided int8

const (
	undecided  divided = iota
	undivided          // over one connection
	unmeasured         // the rate of the first bytes decides
	inParts
)

// tried is the outcome of the last session.
type tried int8

const (
	noSession    tried = iota
	sessionEnded       // the object is made, or the upload fails
	slowSession        // the first bytes were slow
	wrongSource        // the checksum of the service shows that the file is not the one of the saved upload
	wrongBytes         // the compression gave other bytes than those that were sent
)

// A step is what an upload does next.
type step int8

const (
	lookAgain     step = iota // finds out facts.made, of an upload that is not saved
	findObject                // finds out facts.made, of a saved upload that has ended
	compareSource             // finds out facts.changed
	prepare                   // finds out facts.unmet and facts.small
	divide                    // finds out facts.parts

	startOver // discards what is saved or sent
	resumeSession
	resumeParts
	insert // sends the source in one request
	sendParts
	newSession
	measureSession  // newSession, and the first bytes are measured
	continueSession // after its first bytes were measured

	refuseOptions // fails
	refuseSource  // fails
	finish        // ends with the outcome of the session
	stop          // ends, because another process made the object
)

// A plan is a step, with the reason for startOver.
type plan struct {
	step step
	why  reason
}

// reason is why an upload starts over.
type reason int8

const (
	noReason        reason = iota
	asRequested            // by the caller
	otherEndpoint          // the session of the saved upload cannot be used
	sourceChanged          // the file is not the one with which the saved upload began
	onlyRemoval            // the saved upload has ended, and its object does not exist
	slowLink               // the file will be sent in parts
	otherChecksum          // only the checksum of the service showed that the source changed
	otherCompressor        // the compression gives other bytes
)

// nextStep decides what an upload of a file does next. The first row that applies counts:
//
//	the last session                                            next step
//	  ended                                                     finish
//	  wrong source, changed sources start over                  start over
//	  wrong source                                              finish (it fails)
//	  wrong bytes                                               start over
//	  slow, parts undecided                                     divide
//	  slow, in parts                                            start over, then send parts
//	  slow                                                      continue the session over one connection
//	the saved upload
//	  to be restarted, as requested                             start over
//	  has other options                                         refuse the options
//	  is unusable                                               start over
//	  its source is not compared                                compare the source
//	  its source changed, only the removal is left              start over
//	  its source changed, changed sources start over            start over
//	  its source changed                                        refuse the source
//	  only the removal is left, the object is not looked for    find the object
//	  only the removal is left, no object                       start over
//	  is in parts, or has an object                             resume the parts
//	  has a session                                             resume the session
//	nothing is saved
//	  the object may be made by another process                 look again
//	  it is made by another process                             stop
//	  in parts (after a slow session)                           send parts
//	  preconditions and content are not looked at               prepare
//	  a required object is missing                              new session, whose start shows whether the bucket is missing
//	  small                                                     insert
//	  parts undecided                                           divide
//	  the rate of the first bytes decides                       measure a new session
//	  otherwise                                                 new session
func nextStep(f facts) plan {
	switch {
	case f.tried != noSession:
		return afterSession(f)
	case f.saved != nothingSaved:
		return withSaved(f)
	case f.made == unknown:
		return plan{step: lookAgain}
	case f.made == yes:
		return plan{step: stop}
	case f.parts == inParts:
		return plan{step: sendParts}
	case f.unmet == unknown:
		return plan{step: prepare}
	case f.unmet == yes:
		return plan{step: newSession}
	case f.small == yes:
		return plan{step: insert}
	case f.parts == undecided:
		return plan{step: divide}
	case f.parts == unmeasured:
		return plan{step: measureSession}
	}
	return plan{step: newSession}
}

// afterSession is nextStep after a session.
func afterSession(f facts) plan {
	switch {
	case f.tried == wrongSource && f.replace:
		return plan{startOver, otherChecksum}
	case f.tried == wrongBytes:
		return plan{startOver, otherCompressor}
	case f.tried != slowSession:
		return plan{step: finish}
	case f.parts == undecided:
		return plan{step: divide}
	case f.parts == inParts:
		return plan{startOver, slowLink}
	}
	return plan{step: continueSession}
}

// withSaved is nextStep for a saved upload.
func withSaved(f facts) plan {
	switch {
	case f.restart:
		return plan{startOver, asRequested}
	case f.differs:
		return plan{step: refuseOptions}
	case f.unusable:
		return plan{startOver, otherEndpoint}
	case f.changed == unknown:
		return plan{step: compareSource}
	case f.changed == yes && (f.saved == savedRemoval || f.replace):
		return plan{startOver, sourceChanged}
	case f.changed == yes:
		return plan{step: refuseSource}
	case f.saved == savedRemoval && f.made == unknown:
		return plan{step: findObject}
	case f.saved == savedRemoval && f.made == no:
		return plan{startOver, onlyRemoval}
	case f.saved == savedSession:
		return plan{step: resumeSession}
	}
	return plan{step: resumeParts}
}

// startedOver returns the facts after an upload has started over. The decision to send the file in parts stays.
func (f facts) startedOver(why reason) facts {
	f = facts{made: no, replace: f.replace, parts: f.parts}
	if why != slowLink {
		f.parts = undecided
	}
	return f
}
