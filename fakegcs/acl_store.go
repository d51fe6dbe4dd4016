package fakegcs

import (
	"net/http"
	"slices"
)

// acl returns the list of the bucket, or that for its new objects.
func (r *bucketResource) acl(ofObjects bool) []ACLRule {
	list := r.ACL
	if ofObjects {
		list = r.DefaultObjectACL
	}
	if list == nil {
		return newBucketACL
	}
	return list
}

// aclEdit returns the new rules of a list. It may change those that it gets.
type aclEdit func(b *bucket, rules []ACLRule) ([]ACLRule, *apiError)

// access edits the rules of a list, which changes its bucket or object, and returns its entries.
// With a nil edit, it only returns them. It fails if the bucket has no lists.
func (s *store) access(l aclList, base string, edit aclEdit) ([]aclEntry, *apiError) {
	verb := "get"
	if edit != nil {
		verb = "update"
		defer s.claim(l.bucket, l.object)()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(l.bucket)
	var v *version
	if err == nil && l.object != "" {
		_, v, err = s.versionLocked(l.bucket, l.object, l.generation)
	}
	switch {
	case err != nil:
		return nil, err
	case b.uniform() && v == nil:
		return nil, errUniform(verb, "a bucket")
	case b.uniform():
		return nil, errUniform(verb, "an object")
	case v != nil && edit != nil:
		o := v.clone()
		if o.ACL, err = edit(b, slices.Clone(v.rules())); err != nil {
			return nil, err
		}
		if v, err = s.replaceLocked(b, v, v.with(o), s.now()); err != nil {
			return nil, err
		}
	case edit != nil:
		was := b.bucketResource
		rules, err := edit(b, slices.Clone(b.acl(l.ofObjects)))
		if err != nil {
			return nil, err
		}
		if l.ofObjects {
			b.DefaultObjectACL = rules
		} else {
			b.ACL = rules
		}
		if _, err := s.bucketChanged(b, was); err != nil {
			return nil, err
		}
	}
	if v != nil {
		return v.entries(base), nil
	}
	return l.entries(base, b.Etag, b.acl(l.ofObjects)), nil
}

func indexRule(rules []ACLRule, entity string) int {
	return slices.IndexFunc(rules, func(r ACLRule) bool { return r.Entity == entity })
}

func errNoRule(entity string) *apiError {
	return refuse(http.StatusNotFound, "notFound", "The specified entity %s is not in the access control list.", entity)
}

// setRule gives an entity a role. If it has none, it is added, or with add unset it is an error.
func setRule(rule ACLRule, add bool) aclEdit {
	return func(b *bucket, rules []ACLRule) ([]ACLRule, *apiError) {
		if err := b.checkPublic(rule.Entity); err != nil {
			return nil, err
		}
		if i := indexRule(rules, rule.Entity); i >= 0 {
			rules[i] = rule
			return rules, nil
		}
		if !add {
			return nil, errNoRule(rule.Entity)
		}
		return append(rules, rule), checkCount(len(rules) + 1)
	}
}

// dropRule removes an entity.
func (l aclList) dropRule(entity string) aclEdit {
	return func(_ *bucket, rules []ACLRule) ([]ACLRule, *apiError) {
		i := indexRule(rules, entity)
		switch {
		case i < 0:
			return nil, errNoRule(entity)
		case l.object != "" && entity == objectOwner:
			return nil, invalid("The owner of an object cannot be removed from its access control list.")
		}
		return slices.Delete(rules, i, i+1), nil
	}
}
