package upload

// reason is why a file is sent over one connection. The zero value is none.
type reason struct {
	kind reasonKind
	text string // for events
}

type reasonKind int

const (
	noReason   reasonKind = iota
	final                 // nothing that this upload does changes it
	unmeasured            // the service is near, and the speed of the first request decides
)

// because returns a final reason with a text. If the text is "", there is none.
func because(text string) reason {
	if text == "" {
		return reason{}
	}
	return reason{kind: final, text: text}
}

// and returns the reason for a file for which the next way was refused, too.
func (r reason) and(next reason) reason {
	if r.kind != noReason && r.text != next.text {
		next.text = r.text + "; " + next.text
	}
	return next
}
