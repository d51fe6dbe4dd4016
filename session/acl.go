package session

import (
	"slices"
	"strings"

	"gcsup/internal/objectmeta"
)

// ACLRule gives an entity a role for an object. An upload sends Entity and Role.
// The service sets the other fields.
// https://cloud.google.com/storage/docs/json_api/v1/objectAccessControls
type ACLRule struct {
	// Entity is AllUsers, AllAuthenticatedUsers, or of the form user-EMAIL,
	// group-EMAIL, domain-DOMAIN or project-TEAM-PROJECT.
	Entity      string       `json:"entity"`
	EntityID    string       `json:"entityId,omitempty"`
	Role        string       `json:"role"` // RoleReader or RoleOwner
	Domain      string       `json:"domain,omitempty"`
	Email       string       `json:"email,omitempty"`
	ProjectTeam *ProjectTeam `json:"projectTeam,omitempty"`
}

// ProjectTeam is the team of a project that an [ACLRule] names.
type ProjectTeam struct {
	ProjectNumber string `json:"projectNumber,omitempty"`
	Team          string `json:"team,omitempty"` // editors, owners or viewers
}

// Entities and roles of an [ACLRule].
const (
	AllUsers              = "allUsers"
	AllAuthenticatedUsers = "allAuthenticatedUsers"

	RoleReader = "READER"
	RoleOwner  = "OWNER"
)

// aclLimit bounds the rules of an object.
// https://cloud.google.com/storage/quotas#objects
const aclLimit = 100

// validACL returns an error that wraps [ErrInvalid] if the service would refuse the
// access control.
func validACL(rules []ACLRule, predefined string) error {
	switch {
	case predefined != "" && !slices.Contains(objectmeta.PredefinedACLs, predefined):
		return invalid("predefined ACL %q: want %s", predefined, strings.Join(objectmeta.PredefinedACLs, ", "))
	case predefined != "" && len(rules) > 0:
		return invalid("access is given by ACL rules or by a predefined ACL, not by both")
	case len(rules) > aclLimit:
		return invalid("%d ACL rules, the limit is %d", len(rules), aclLimit)
	}
	for _, rule := range rules {
		switch {
		case rule.Entity == "":
			return invalid("an ACL rule without an entity")
		case unprintable(rule.Entity):
			return invalid("the ACL entity %q has a control character or is not valid UTF-8", rule.Entity)
		case rule.Role != RoleReader && rule.Role != RoleOwner:
			return invalid("the role %q of the ACL entity %q: want %s or %s", rule.Role, rule.Entity, RoleReader, RoleOwner)
		}
	}
	return nil
}

// sentACL returns the fields of rules that an upload sends.
func sentACL(rules []ACLRule) []ACLRule {
	var sent []ACLRule
	for _, rule := range rules {
		sent = append(sent, ACLRule{Entity: rule.Entity, Role: rule.Role})
	}
	return sent
}

// aclText returns the rules in a form that is equal for equal access.
func aclText(rules []ACLRule) string {
	var lines []string
	for _, rule := range rules {
		lines = append(lines, rule.Entity+": "+rule.Role)
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}
