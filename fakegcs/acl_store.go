package fakegcs

import "slices"

// objectRoles are the roles of the access control lists of objects.
var objectRoles = []string{"READER", "OWNER"}

// The lists of a new bucket,
// https://cloud.google.com/storage/docs/access-control/lists#default.
var newBucketACL = []ACLRule{{"project-owners-" + projectNumber, "OWNER"}, {"project-editors-" + projectNumber, "OWNER"}, {"project-viewers-" + projectNumber, "READER"}}

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

// rules returns the rules of a list.
func (s *store) rules(l aclList) (aclRules, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, v, err := s.aclLocked(l, "get")
	if err != nil {
		return aclRules{}, err
	}
	return rulesOf(b, v, l), nil
}

func rulesOf(b *bucket, v *version, l aclList) aclRules {
	if v != nil {
		return aclRules{v.rules(), v.Object, v.Etag}
	}
	return aclRules{b.acl(l.ofObjects), nil, b.Etag}
}

// aclLocked finds the bucket of a list, and the object if it is the list of one. It fails if
// the bucket has no lists.
func (s *store) aclLocked(l aclList, verb string) (*bucket, *version, *apiError) {
	b, err := s.bucketLocked(l.bucket)
	var v *version
	if err == nil && l.object != "" {
		_, v, err = s.versionLocked(l.bucket, l.object, l.generation)
	}
	switch {
	case err != nil:
		return nil, nil, err
	case b.uniform() && v == nil:
		return nil, nil, errUniformBucket(verb)
	case b.uniform():
		return nil, nil, errUniform(verb)
	}
	return b, v, nil
}

// setRule gives an entity a role in a list. If it has none, it is added, or with add unset it
// is an error.
func (s *store) setRule(l aclList, rule ACLRule, add bool) (aclRules, *apiError) {
	if err := rule.check(l.aclRoles()); err != nil {
		return aclRules{}, err
	}
	defer s.claim(l.bucket, l.object)()
	s.mu.Lock()
	defer s.mu.Unlock()
	b, v, err := s.aclLocked(l, "update")
	if err == nil {
		err = b.checkPublic(rule.Entity)
	}
	if err != nil {
		return aclRules{}, err
	}
	was := rulesOf(b, v, l)
	list := slices.Clone(was.list)
	switch i := indexRule(list, rule.Entity); {
	case i >= 0:
		list[i] = rule
	case !add:
		return was.only(rule.Entity) // its error
	case len(list) >= maxACL:
		return aclRules{}, invalid("The ACL has %d entries, at most %d are allowed.", len(list)+1, maxACL)
	default:
		list = append(list, rule)
	}
	is, err := s.replaceRulesLocked(b, v, l, list)
	if err != nil {
		return aclRules{}, err
	}
	return is.only(rule.Entity)
}

// dropRule removes an entity from a list.
func (s *store) dropRule(l aclList, entity string) *apiError {
	defer s.claim(l.bucket, l.object)()
	s.mu.Lock()
	defer s.mu.Unlock()
	b, v, err := s.aclLocked(l, "update")
	if err != nil {
		return err
	}
	was := rulesOf(b, v, l)
	if _, err := was.only(entity); err != nil {
		return err
	}
	if v != nil && entity == objectOwner {
		return invalid("The owner of an object cannot be removed from its access control list.")
	}
	i := indexRule(was.list, entity)
	_, err = s.replaceRulesLocked(b, v, l, slices.Delete(slices.Clone(was.list), i, i+1))
	return err
}

// replaceRulesLocked replaces the rules of a list, which changes its bucket or object.
func (s *store) replaceRulesLocked(b *bucket, v *version, l aclList, list []ACLRule) (aclRules, *apiError) {
	if v != nil {
		o := v.clone()
		o.ACL = list
		changed, err := s.replaceLocked(b, v, v.with(o), s.now())
		return rulesOf(b, changed, l), err
	}
	was := b.bucketResource
	if l.ofObjects {
		b.DefaultObjectACL = list
	} else {
		b.ACL = list
	}
	if _, err := s.bucketChanged(b, was); err != nil {
		return aclRules{}, err
	}
	return rulesOf(b, nil, l), nil
}
