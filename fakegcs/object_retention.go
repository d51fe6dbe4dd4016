package fakegcs

import (
	"net/http"
	"slices"
	"time"
)

// Holds and retention keep objects from being deleted or replaced.
// https://cloud.google.com/storage/docs/object-holds
// https://cloud.google.com/storage/docs/bucket-lock

// protected returns an error if a hold or retention forbids that v is deleted or
// replaced.
func protected(v *version, now time.Time) *apiError {
	if err := held(v); err != nil {
		return err
	}
	until := v.RetentionExpirationTime
	if v.Retention != nil && v.Retention.RetainUntilTime.After(until) {
		until = v.Retention.RetainUntilTime
	}
	if now.Before(until) {
		return refuse(http.StatusForbidden, "retentionPolicyNotMet", "Object '%s/%s' is subject to bucket's retention policy or object retention and cannot be deleted or overwritten until %s", v.Bucket, v.Name, until.Format(time.RFC3339Nano))
	}
	return nil
}

// held returns an error if a hold forbids that v is deleted, replaced or archived.
// Unlike retention, a hold also forbids archiving in a bucket with versioning.
func held(v *version) *apiError {
	kind := ""
	switch {
	case v.TemporaryHold:
		kind = "Temporary"
	case v.EventBasedHold:
		kind = "Event-Based"
	default:
		return nil
	}
	return refuse(http.StatusForbidden, "activeHold", "Object '%s/%s' is under active %s hold and cannot be deleted, overwritten or archived until hold is removed.", v.Bucket, v.Name, kind)
}

// begin starts the retention period of o at start, and sets when it ends. Under an
// event-based hold the period does not start until the hold is released.
func (p *retentionPolicy) begin(o *Object, start time.Time) {
	o.RetentionExpirationTime = time.Time{}
	if p != nil && !o.EventBasedHold {
		o.RetentionExpirationTime = start.Add(p.period())
	}
}

// period returns how long objects are retained; 0 without a policy.
func (p *retentionPolicy) period() time.Duration {
	if p == nil {
		return 0
	}
	return time.Duration(p.RetentionPeriod) * time.Second
}

// completeRetention checks the policy and sets its time, which stays if the period does. A locked policy can only be
// extended, and stays locked.
func (r *bucketResource) completeRetention(before *bucketResource, now time.Time) *apiError {
	was, is := before.RetentionPolicy, r.RetentionPolicy
	locked := was != nil && was.IsLocked
	switch {
	case is == nil && locked:
		return refuse(http.StatusForbidden, "forbidden", "Cannot remove a locked Retention Policy from a bucket.")
	case is == nil:
		return nil
	case is.RetentionPeriod < 1 || is.RetentionPeriod > 3_155_760_000: // https://cloud.google.com/storage/docs/bucket-lock
		return invalid("Invalid retention period: %d. It must be 1 to 3155760000 seconds.", is.RetentionPeriod)
	case locked && is.RetentionPeriod < was.RetentionPeriod:
		return refuse(http.StatusForbidden, "forbidden", "Cannot reduce retention duration of a locked Retention Policy for bucket '%s'.", r.Name)
	}
	is.EffectiveTime, is.IsLocked = timestamp{now}, locked
	if locked || was.period() == is.period() {
		is.EffectiveTime = was.EffectiveTime
	}
	return nil
}

// retain applies the bucket's retention policy to its objects. It does not change
// the directory, because the loader calls it, too.
func (b *bucket) retain() {
	apply := func(v *version) *version {
		o := v.clone()
		b.RetentionPolicy.begin(o, v.retained)
		return v.with(o)
	}
	for _, g := range b.objects {
		if g.live != nil {
			g.live = apply(g.live)
		}
		g.old = slices.Clone(g.old)
		for i, v := range g.old {
			g.old[i] = apply(v)
		}
	}
}

// checkRetention returns an error if an object's retention must not change from was to is
// at the time now. A locked retention can only be extended. To shorten or remove an
// unlocked one, the caller must set override,
// https://cloud.google.com/storage/docs/object-lock.
func checkRetention(was, is *Retention, override bool, now time.Time) *apiError {
	if is != nil && (was == nil || *is != *was) {
		switch {
		case is.Mode != "Locked" && is.Mode != "Unlocked" || is.RetainUntilTime.IsZero():
			return invalid("Both mode ('Locked' or 'Unlocked') and retainUntilTime are required.")
		case !is.RetainUntilTime.After(now):
			return invalid("Retain until time cannot be in the past.")
		}
	}
	if was == nil {
		return nil
	}
	smaller := is == nil || is.RetainUntilTime.Before(was.RetainUntilTime)
	switch {
	case was.Mode == "Locked" && (smaller || is.Mode != "Locked"):
		return refuse(http.StatusForbidden, "forbidden", "The locked object retention cannot be removed. Its retention mode cannot be changed and its retention period cannot be shortened.")
	case was.Mode != "Locked" && !override && (smaller || is.Mode == "Locked"):
		return refuse(http.StatusForbidden, "forbidden", "The unlocked object retention cannot be removed and its retention period cannot be shortened without overriding unlocked retention intent and permission.")
	}
	return nil
}
