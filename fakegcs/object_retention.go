package fakegcs

import (
	"net/http"
	"slices"
	"time"
)

// Holds and retention: what keeps objects from being deleted and replaced.
// https://cloud.google.com/storage/docs/object-holds
// https://cloud.google.com/storage/docs/bucket-lock

// protected refuses to delete or replace v while it is held or retained.
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

// held refuses what must not be done to v under a hold: unlike retention, a
// hold also keeps v from becoming noncurrent in a bucket with versioning.
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

// begin sets when the retention of o ends, which begins at start. An
// event-based hold puts it off until the hold is released.
func (p *retentionPolicy) begin(o *Object, start time.Time) {
	o.RetentionExpirationTime = time.Time{}
	if p != nil && !o.EventBasedHold {
		o.RetentionExpirationTime = start.Add(p.period())
	}
}

func (p *retentionPolicy) period() time.Duration {
	if p == nil {
		return 0
	}
	return time.Duration(p.RetentionPeriod) * time.Second
}

// retain applies the bucket's retention policy to the objects that are there.
// The directory needs no change: when it is read, this is done again.
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

// mayRetain refuses to change the retention of one object, was, into now what
// it must not become: a locked one only grows, an unlocked one needs the
// caller's word to shrink, https://cloud.google.com/storage/docs/object-lock.
func mayRetain(was, is *Retention, override bool, now time.Time) *apiError {
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
