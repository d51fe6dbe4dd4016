package fakegcs

import (
	"encoding/json"
	"maps"
	"regexp"
	"time"
	"unicode"
	"unicode/utf8"

	"gcsup/fakegcs/internal/strictjson"
)

// Contexts are the contexts of an object,
// https://cloud.google.com/storage/docs/object-contexts.
type Contexts struct {
	Custom map[string]Context `json:"custom,omitempty"`
}

// Context is one context. The server sets the times.
type Context struct {
	Value      string    `json:"value"`
	CreateTime time.Time `json:"createTime,omitzero"`
	UpdateTime time.Time `json:"updateTime,omitzero"`
}

// MarshalJSON implements [json.Marshaler]. The times have three decimals, as in a reply.
func (c Context) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Value      string    `json:"value"`
		CreateTime timestamp `json:"createTime,omitzero"`
		UpdateTime timestamp `json:"updateTime,omitzero"`
	}{c.Value, timestamp{c.CreateTime}, timestamp{c.UpdateTime}})
}

// change returns a copy of c with the changes of a patch: a null removes a key, or
// all of them.
func (c *Contexts) change(raw json.RawMessage, now time.Time) (*Contexts, *apiError) {
	var patch *struct {
		Custom json.RawMessage `json:"custom"`
	}
	if err := strictjson.Decode(raw, &patch, "contexts"); err != nil {
		return nil, invalid("Invalid value for contexts: %v", err)
	}
	var changes map[string]*struct {
		Value      *string `json:"value"`
		CreateTime any     `json:"createTime"` // only the server sets the times
		UpdateTime any     `json:"updateTime"`
	}
	if patch != nil && patch.Custom != nil {
		if err := strictjson.Decode(patch.Custom, &changes, "contexts", "custom"); err != nil {
			return nil, invalid("Invalid value for contexts: %v", err)
		}
	}
	switch {
	case patch == nil, string(patch.Custom) == "null":
		return nil, nil
	case len(changes) == 0:
		return c, nil
	}
	custom := map[string]Context{}
	if c != nil {
		maps.Copy(custom, c.Custom)
	}
	for key, change := range changes {
		if change == nil || change.Value == nil { // the official library removes a key with {}
			delete(custom, key)
			continue
		}
		if err := checkContext(key, *change.Value); err != nil {
			return nil, err
		}
		was, existed := custom[key]
		is := Context{*change.Value, now, now}
		if existed {
			is.CreateTime = was.CreateTime
		}
		custom[key] = is
	}
	if len(custom) == 0 {
		return nil, nil
	}
	return &Contexts{custom}, nil
}

// newContexts checks the contexts that an uploader gives a new object, and sets their
// times.
func (o *Object) newContexts(now time.Time) *apiError {
	if o.Contexts == nil {
		return nil
	}
	custom := map[string]Context{}
	for key, c := range o.Contexts.Custom {
		if err := checkContext(key, c.Value); err != nil {
			return err
		}
		custom[key] = Context{c.Value, now, now}
	}
	o.Contexts = &Contexts{custom}
	return nil
}

// contextsOf returns the contexts of the sources of a composed object. A later source wins, which is not
// documented. https://cloud.google.com/storage/docs/object-contexts
func contextsOf(sources []*version) *Contexts {
	custom := map[string]Context{}
	for _, v := range sources {
		if v.Contexts != nil {
			maps.Copy(custom, v.Contexts.Custom)
		}
	}
	if len(custom) == 0 {
		return nil
	}
	return &Contexts{custom}
}

// checkContext applies https://cloud.google.com/storage/docs/use-object-contexts.
func checkContext(texts ...string) *apiError {
	for _, s := range texts {
		first, _ := utf8.DecodeRuneInString(s)
		switch n := utf8.RuneCountInString(s); {
		case n == 0 || n > 256:
			return invalid("The keys and values of contexts must have 1 to 256 characters.")
		case !unicode.IsLetter(first) && !unicode.IsDigit(first):
			return invalid("The keys and values of contexts must begin with an alphanumeric character: '%s'.", s)
		}
	}
	return nil
}

// contextFilter is the filter of a listing: objects that have a context, with a value or any.
// https://cloud.google.com/storage/docs/listing-objects#filter-by-object-contexts
type contextFilter struct {
	not        bool // objects that do not have it
	key, value string
	any        bool // any value
}

var contextFilterSyntax = regexp.MustCompile(`^\s*(-?)\s*contexts\."([^"]+)"\s*(?:=\s*"([^"]*)"|(:\s*\*))\s*$`)

// parseContextFilter parses a filter. The server has these four forms:
//
//	contexts."KEY"="VALUE"   -contexts."KEY"="VALUE"   contexts."KEY":*   -contexts."KEY":*
func parseContextFilter(filter string) (*contextFilter, *apiError) {
	m := contextFilterSyntax.FindStringSubmatch(filter)
	if m == nil { // to ignore it would list too much
		return nil, errUnimplemented("listing by this filter")
	}
	return &contextFilter{not: m[1] != "", key: m[2], value: m[3], any: m[4] != ""}, nil
}

func (f *contextFilter) match(o *Object) bool {
	var c Context
	has := false
	if o.Contexts != nil {
		c, has = o.Contexts.Custom[f.key]
	}
	return (has && (f.any || c.Value == f.value)) != f.not
}
