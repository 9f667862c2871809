-- Sockets into a computer are open in any process: each hears when one may have lost its right to be.
CREATE FUNCTION announce_computer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('cubicle_authority', 'computer:' || NEW.id);
  RETURN NULL;
END $$;

CREATE TRIGGER announce AFTER UPDATE ON computers
  FOR EACH ROW WHEN (OLD.rotation <> NEW.rotation OR OLD.state <> NEW.state)
  EXECUTE FUNCTION announce_computer();
