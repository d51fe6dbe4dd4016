package fakegcs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The configuration of a bucket. The server keeps all of it, and enforces billing
// and encryption. It does not act on lifecycle rules, answer preflight requests,
// write logs or serve a website.
// https://cloud.google.com/storage/docs/json_api/v1/buckets#resource

type billing struct {
	RequesterPays bool `json:"requesterPays"`
}

type corsRule struct {
	Origin         []string `json:"origin,omitempty"`
	Method         []string `json:"method,omitempty"`
	ResponseHeader []string `json:"responseHeader,omitempty"`
	MaxAgeSeconds  *int32   `json:"maxAgeSeconds,omitempty"`
}

type encryption struct {
	DefaultKMSKeyName string `json:"defaultKmsKeyName,omitempty"`
}

type logging struct {
	LogBucket       string `json:"logBucket,omitempty"`
	LogObjectPrefix string `json:"logObjectPrefix,omitempty"`
}

type website struct {
	MainPageSuffix string `json:"mainPageSuffix,omitempty"`
	NotFoundPage   string `json:"notFoundPage,omitempty"`
}

type lifecycle struct {
	Rule []lifecycleRule `json:"rule,omitempty"`
}

type lifecycleRule struct {
	Action struct {
		Type         string `json:"type"`
		StorageClass string `json:"storageClass,omitempty"`
	} `json:"action"`
	Condition lifecycleCondition `json:"condition"`
}

// lifecycleCondition has pointers for the fields in which 0 or false is a condition.
type lifecycleCondition struct {
	Age                     *int32   `json:"age,omitempty"`
	CreatedBefore           string   `json:"createdBefore,omitempty"`
	CustomTimeBefore        string   `json:"customTimeBefore,omitempty"`
	DaysSinceCustomTime     *int32   `json:"daysSinceCustomTime,omitempty"`
	DaysSinceNoncurrentTime *int32   `json:"daysSinceNoncurrentTime,omitempty"`
	IsLive                  *bool    `json:"isLive,omitempty"`
	MatchesPattern          string   `json:"matchesPattern,omitempty"`
	MatchesPrefix           []string `json:"matchesPrefix,omitempty"`
	MatchesStorageClass     []string `json:"matchesStorageClass,omitempty"`
	MatchesSuffix           []string `json:"matchesSuffix,omitempty"`
	NoncurrentTimeBefore    string   `json:"noncurrentTimeBefore,omitempty"`
	NumNewerVersions        *int32   `json:"numNewerVersions,omitempty"`
}

// Output fields: a request may have them, but they change nothing.
var (
	bucketOutput = strings.Fields("etag generation hardDeleteTime id kind locationType metageneration name owner projectNumber satisfiesPZI satisfiesPZS selfLink softDeleteTime timeCreated updated")
	objectOutput = strings.Fields("bucket componentCount crc32c customerEncryption etag generation hardDeleteTime id kind kmsKeyName md5Hash mediaLink metageneration name owner restoreToken " +
		"retentionExpirationTime selfLink size softDeleteTime storageClass timeCreated timeDeleted timeFinalized timeStorageClassUpdated updated")
)

// bucketMissing has the fields of the service that this server does not implement.
// An empty value is accepted.
var bucketMissing = strings.Fields("ipFilter")

// unkept refuses a field of a resource unless it may be ignored. kind names the
// resource in the error.
func unkept(kind, name string, raw json.RawMessage, output, missing []string) *apiError {
	switch {
	case slices.Contains(output, name):
	case !slices.Contains(missing, name):
		return invalid("There is no field '%s' of %ss, or this emulator does not know it.", name, kind)
	case !empty(raw):
		return errUnimplemented(fmt.Sprintf("the field '%s' of %ss", name, kind))
	}
	return nil
}

// empty reports whether a JSON value configures nothing.
func empty(raw json.RawMessage) bool {
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return false
	}
	switch compact.String() {
	case "null", "[]", "{}", `""`, `{"enabled":false}`:
		return true
	}
	return false
}

// completeLifecycle applies https://cloud.google.com/storage/docs/lifecycle.
func (r *bucketResource) completeLifecycle(*bucketResource, time.Time) *apiError {
	if r.Lifecycle == nil || len(r.Lifecycle.Rule) == 0 {
		r.Lifecycle = nil
		return nil
	}
	if n := len(r.Lifecycle.Rule); n > 100 {
		return invalid("A bucket can have at most 100 lifecycle rules, not %d.", n)
	}
	for i, rule := range r.Lifecycle.Rule {
		if err := rule.check(); err != nil {
			return invalid("Lifecycle rule %d: %s", i+1, err.message)
		}
	}
	return nil
}

func (r *lifecycleRule) check() *apiError {
	a, c := r.Action, r.Condition
	class, refused := storageClass(a.StorageClass)
	if refused != nil {
		return refused
	}
	switch a.Type {
	case "SetStorageClass":
		if class == "" {
			return invalid("The action SetStorageClass requires a storageClass.")
		}
	case "Delete", "AbortIncompleteMultipartUpload":
		if class != "" {
			return invalid("The action %s takes no storageClass.", a.Type)
		}
	default:
		return invalid("There is no action '%s'.", a.Type)
	}
	for _, name := range c.MatchesStorageClass {
		if class, err := storageClass(name); err != nil || class == "" {
			return invalid("There is no storage class '%s'.", name)
		}
	}
	for _, date := range []string{c.CreatedBefore, c.CustomTimeBefore, c.NoncurrentTimeBefore} {
		if _, err := time.Parse(time.DateOnly, date); date != "" && err != nil {
			return invalid("'%s' is not a date such as 2026-01-31.", date)
		}
	}
	for _, n := range []*int32{c.Age, c.DaysSinceCustomTime, c.DaysSinceNoncurrentTime, c.NumNewerVersions} {
		if n != nil && *n < 0 {
			return invalid("%d is negative.", *n)
		}
	}
	if given, _ := json.Marshal(c); string(given) == "{}" {
		return invalid("It requires at least one condition.")
	}
	c.Age, c.MatchesPrefix, c.MatchesSuffix = nil, nil, nil
	if others, _ := json.Marshal(c); a.Type == "AbortIncompleteMultipartUpload" && string(others) != "{}" {
		return invalid("The action %s takes the conditions age, matchesPrefix and matchesSuffix, not %s.", a.Type, others)
	}
	return nil
}

// completeCORS applies https://cloud.google.com/storage/docs/cross-origin.
func (r *bucketResource) completeCORS(*bucketResource, time.Time) *apiError {
	for i, rule := range r.CORS {
		for _, method := range rule.Method {
			switch method {
			case "*", "GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS":
			default:
				return invalid("CORS rule %d: there is no method '%s'.", i+1, method)
			}
		}
		if rule.MaxAgeSeconds != nil && *rule.MaxAgeSeconds < 0 {
			return invalid("CORS rule %d: maxAgeSeconds is negative.", i+1)
		}
	}
	return nil
}

// autoclass is the setting with which the service changes the storage class of objects that are not read. The
// server only keeps it. https://cloud.google.com/storage/docs/autoclass
type autoclass struct {
	Enabled                        bool      `json:"enabled"`
	ToggleTime                     timestamp `json:"toggleTime"`
	TerminalStorageClass           string    `json:"terminalStorageClass,omitempty"`
	TerminalStorageClassUpdateTime timestamp `json:"terminalStorageClassUpdateTime,omitzero"`
}

// completeAutoclass sets the times of the setting.
func (r *bucketResource) completeAutoclass(before *bucketResource, now time.Time) *apiError {
	was, is := cmp.Or(before.Autoclass, &autoclass{}), cmp.Or(r.Autoclass, &autoclass{})
	if before.Autoclass == nil && !is.Enabled {
		r.Autoclass = nil
		return nil
	}
	a := &autoclass{Enabled: is.Enabled, ToggleTime: was.ToggleTime}
	if is.Enabled != was.Enabled {
		a.ToggleTime = timestamp{now}
	}
	if is.Enabled {
		a.TerminalStorageClass = cmp.Or(is.TerminalStorageClass, was.TerminalStorageClass, "NEARLINE")
		a.TerminalStorageClassUpdateTime = was.TerminalStorageClassUpdateTime
		if a.TerminalStorageClass != was.TerminalStorageClass {
			a.TerminalStorageClassUpdateTime = timestamp{now}
		}
	}
	r.Autoclass = a
	return nil
}

// checkAutoclass returns an error if the bucket cannot have its setting.
func (r *bucketResource) checkAutoclass() *apiError {
	a := r.Autoclass
	switch {
	case a == nil || !a.Enabled:
	case a.TerminalStorageClass != "NEARLINE" && a.TerminalStorageClass != "ARCHIVE":
		return invalid("Invalid value for autoclass: '%s' is not NEARLINE or ARCHIVE.", a.TerminalStorageClass)
	case r.StorageClass != "STANDARD":
		return invalid("Invalid value for autoclass: the default storage class must be STANDARD, not %s.", r.StorageClass)
	}
	return nil
}

// placement has the two regions of a configurable dual-region, or the zone of a zonal bucket.
// https://cloud.google.com/storage/docs/locations
type placement struct {
	DataLocations []string `json:"dataLocations"`
}

// locate checks where the bucket is, and sets its location type. was is nil for a new bucket.
func (r *bucketResource) locate(was *bucketResource) *apiError {
	p := r.CustomPlacement
	if p == nil {
		if was != nil && was.CustomPlacement != nil {
			return errPlacementChanges()
		}
		r.LocationType = locationType(r.Location)
		return nil
	}
	for i, name := range p.DataLocations {
		p.DataLocations[i] = strings.ToUpper(name)
	}
	switch {
	case was != nil && (was.CustomPlacement == nil || !slices.Equal(was.CustomPlacement.DataLocations, p.DataLocations)):
		return errPlacementChanges()
	case len(p.DataLocations) == 1 && r.StorageClass == "RAPID":
		r.LocationType = "zone"
	case len(p.DataLocations) == 2 && p.DataLocations[0] != p.DataLocations[1]:
		r.LocationType = "dual-region"
	default:
		return invalid("Invalid value for customPlacementConfig: it must have two regions, or one zone if the storage class is RAPID.")
	}
	return nil
}

func errPlacementChanges() *apiError {
	return invalid("Invalid value for customPlacementConfig: it can be set only when the bucket is created.")
}

// locationType returns the type of a location. Regions are not checked, because new ones are added.
func locationType(location string) string {
	switch location {
	case "US", "EU", "ASIA":
		return "multi-region"
	case "NAM4", "EUR4", "EUR5", "EUR7", "EUR8", "ASIA1":
		return "dual-region"
	}
	return "region"
}
