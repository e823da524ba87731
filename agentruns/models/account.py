"""What the database does when somebody's account changes."""

import pgtrigger
from django.contrib.auth.models import User

# (Sessions of an older password are dead already: Django compares.)
END_SIGN_INS = """
    DELETE FROM knox_authtoken WHERE user_id = NEW.id;
    IF NOT NEW.is_active THEN
        DELETE FROM agentruns_session WHERE account_id = NEW.id;
    END IF;
    RETURN NULL;
"""
OTHER_PASSWORD = pgtrigger.Q(old__password__df=pgtrigger.F("new__password"))
DEACTIVATED = pgtrigger.Q(old__is_active=True, new__is_active=False)


class Account(User):
    """A person's account. Its tokens end with its password, and its tokens and sessions when it is
    deactivated: for good, and by whichever door the row was changed.
    """

    class Meta:
        proxy = True
        triggers = [
            pgtrigger.Trigger(
                name="sign_ins_end",
                when=pgtrigger.After,
                operation=pgtrigger.UpdateOf("password", "is_active"),  # type: ignore[no-untyped-call]
                condition=OTHER_PASSWORD | DEACTIVATED,
                func=END_SIGN_INS,
            )
        ]
