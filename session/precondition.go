package session

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// condition is a precondition with its names in a message and in a request.
type condition struct {
	name, parameter string
	value           *int64
}

func (s Spec) conditions() [4]condition {
	return [4]condition{
		{"generation match", "ifGenerationMatch", s.IfGenerationMatch},
		{"generation not match", "ifGenerationNotMatch", s.IfGenerationNotMatch},
		{"metageneration match", "ifMetagenerationMatch", s.IfMetagenerationMatch},
		{"metageneration not match", "ifMetagenerationNotMatch", s.IfMetagenerationNotMatch},
	}
}

// validConditions returns an error that wraps [ErrInvalid] for preconditions that no
// object meets, or that the official library refuses.
func (s Spec) validConditions() error {
	for _, c := range s.conditions() {
		if c.value != nil && *c.value < 0 {
			return invalid("the precondition %s %d is negative", c.name, *c.value)
		}
	}
	switch {
	case s.IfGenerationMatch != nil && s.IfGenerationNotMatch != nil:
		return invalid("two preconditions for the generation")
	case s.IfMetagenerationMatch != nil && s.IfMetagenerationNotMatch != nil:
		return invalid("two preconditions for the metageneration")
	case s.NoClobber && (s.IfGenerationMatch == nil || *s.IfGenerationMatch != 0):
		return invalid("NoClobber requires an IfGenerationMatch of 0")
	}
	return nil
}

// Unmet returns an [*Error] that wraps [ErrPrecondition], with Early set, if o
// does not meet the preconditions. o is the existing object, or nil if there is
// none.
func (s Spec) Unmet(o *Object) error {
	var generation, metageneration int64
	if o != nil {
		generation, metageneration = o.Generation, o.Metageneration
	}
	var errs []error
	url := s.URL()
	unmet := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrPrecondition}, args...)...))
	}
	if want := s.IfGenerationMatch; want != nil && *want != generation {
		switch {
		case *want == 0:
			unmet("%s exists (generation %d)", url, generation)
		case o == nil:
			unmet("there is no %s, want generation %d", url, *want)
		default:
			unmet("%s has generation %d, want %d", url, generation, *want)
		}
	}
	if not := s.IfGenerationNotMatch; not != nil && *not == generation {
		if o == nil {
			unmet("there is no %s, want one", url)
		} else {
			unmet("%s has generation %d, want another one", url, generation)
		}
	}
	if want := s.IfMetagenerationMatch; want != nil && *want != metageneration {
		unmet("%s has metageneration %d, want %d", url, metageneration, *want)
	}
	if not := s.IfMetagenerationNotMatch; not != nil && *not == metageneration {
		unmet("%s has metageneration %d, want another one", url, metageneration)
	}
	if len(errs) == 0 {
		return nil
	}
	return &Error{Op: OpStat, Status: http.StatusPreconditionFailed, Kind: ErrPrecondition, Err: errors.Join(errs...), Early: true, Existing: o}
}

// Conditions returns the preconditions as parameters of a request of the JSON API.
func (s Spec) Conditions() url.Values {
	q := url.Values{}
	for _, c := range s.conditions() {
		if c.value != nil {
			q.Set(c.parameter, number(c.value))
		}
	}
	return q
}
