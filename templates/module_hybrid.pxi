# Runs of models with contacts and events (kg_hybrid.h).

EVENTS = tuple([MODEL.events[i].name.decode() for i in range(MODEL.n_events)])
IRREVERSIBLE_CONTACTS = tuple([
    MODEL.contacts[i].name.decode() for i in range(MODEL.n_contacts)
    if MODEL.contacts[i].directions > 0 or MODEL.contacts[i].law in (KG_LAW_RESTITUTION, KG_LAW_LATCH)
])
IRREVERSIBLE_EVENTS = tuple([
    MODEL.events[i].name.decode() for i in range(MODEL.n_events)
    if MODEL.events[i].impulse >= 0 or MODEL.events[i].n_impose or MODEL.events[i].n_remove
])
